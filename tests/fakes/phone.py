"""An in-memory phone. Its agent and captures log the lines of the real programs; no program runs."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mplab.base.errors import DeviceError
from mplab.base.machine import CommandResult
from mplab.base.programs import Program
from mplab.drivers.phone.protocol import PhoneIdentity
from tests.fakes.script import Script

WLAN, RMNET = "10.64.1.2", "10.64.2.2"


@dataclass
class FakeProcess:
    """A program that a machine runs: ``mpflex agent``, ``mptrace capture``."""

    name: str
    log: Path
    script: Script
    last: Mapping[str, Any]
    """Record that it logs when it is stopped."""
    pid: int = 4711
    code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        return self.code

    def stop(self, timeout_s: float = 5.0) -> int:
        """End the process and return its exit code."""
        if self.code is None:
            self.script(f"{self.name.partition(' ')[2]}.stop")
            self.code = 0
            with self.log.open("a") as log:
                log.write(json.dumps(self.last) + "\n")
        return self.code


@dataclass
class FakeMachine:
    """The proxy's host, on which captures run; also the parts that phone and proxy have in common."""

    name: str
    script: Script
    dropped: int = 0
    """Packets that each of its captures reports as dropped."""
    processes: list[FakeProcess] = field(default_factory=list)

    def program(self, program: Program) -> str:
        """Return the name by which commands call a program."""
        return program.name

    def spawn(self, argv: Sequence[str], *, log: Path) -> FakeProcess:
        """Start a program, which is ready at once."""
        name = f"{argv[0]} {argv[1]}"
        self.script(f"{self.name}.{argv[1]}")
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text('{"event":"ready"}\n')
        last = {"event": "done", "packets": 7, "dropped": self.dropped} if name == "mptrace capture" else {}
        process = FakeProcess(name, log, self.script, last)
        self.processes.append(process)
        return process

    def kill(self, name: str) -> None:
        """End the programs called `name` by a signal."""
        for process in self.processes:
            if process.name == name and process.code is None:
                process.code = -9

    @property
    def running(self) -> list[str]:
        """Names of the programs that have not ended."""
        return [process.name for process in self.processes if process.code is None]

    def outbox(self, target: Path) -> str:
        """Return the path unchanged: the machine shares this host's files."""
        return str(target)

    def bring(self, target: Path) -> None:
        """Do nothing: the file is there already."""


class FakePhone(FakeMachine):
    """`Phone` with two interfaces.

    Attributes:
        active: overrides of the results of ``mpflex check``.
        moved: kernel counter → growth between two readings.
        records: lines of the agent's log.
        default: the interface of the default route.
        carries: the phone's interface → whether it is up.
        config: the agent's configuration, as kept last.
        buffers: sizes of TCP receive buffers: minimum, initial, maximum.
    """

    def __init__(self, script: Script) -> None:
        super().__init__("phone", script)
        self.active: dict[str, Any] = {}
        self.moved: dict[str, int] = {"wlan0.rx_bytes": 1000, "wlan0.tx_bytes": 10}
        self.records: list[dict[str, Any]] = []
        self.default = "wlan0"
        self.carries = {"wlan0": True, "rmnet0": True}
        self.config: dict[str, Any] = {}
        self.buffers = "4096 131072 6291456"
        self._counters = dict.fromkeys(
            (
                f"{name}.{direction}_{unit}"
                for name in self.interfaces
                for direction in ("rx", "tx")
                for unit in ("bytes", "packets")
            ),
            0,
        )

    @property
    def interfaces(self) -> Mapping[str, str]:
        """Interface name → address."""
        return {"wlan0": WLAN, "rmnet0": RMNET}

    @property
    def devices(self) -> Mapping[str, str]:
        """Interface name → the same name: here the phone uses mplab's names."""
        return {name: name for name in self.interfaces}

    def identity(self) -> PhoneIdentity:
        """Return the identity of the phone, always the same."""
        self.script("phone.identity")
        return PhoneIdentity("phone", "fake phone", "memory", "6.0")

    def spawn(self, argv: Sequence[str], *, log: Path) -> FakeProcess:
        """Start a program; the agent's log has `records` at once."""
        process = super().spawn(argv, log=log)
        if process.name == "mpflex agent":
            lines = "".join(json.dumps(record) + "\n" for record in self.records)
            (log.parent / "agent.jsonl").write_text(lines)
        return process

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Answer ``mpflex check`` and ``ip``, the latter also as a batch; other commands do nothing."""
        del timeout_s, check
        if list(argv[:2]) == ["mpflex", "check"]:
            self.script("phone.check")
            return CommandResult(0, json.dumps(self._checked()), "")
        if argv == ["cat", "/proc/sys/net/ipv4/tcp_rmem"]:
            return CommandResult(0, self.buffers, "")
        if argv[0] == "ip":
            return CommandResult(0, self._ip(list(argv[1:])), "")
        if argv[0] == "sh":
            self.ip(*stdin.splitlines())
        return CommandResult(0, "", "")

    def _checked(self) -> dict[str, Any]:
        multipath = self.config["transport"] != "tcp"
        bound = self.config["device"] or self.default
        result = {
            "ok": True,
            "mptcp": multipath,
            "local": list(self.interfaces.values()) if multipath else [self.interfaces[bound]],
            "congestion_control": self.config["congestion_control"],
        }
        return result | self.active

    def _ip(self, words: list[str]) -> str:
        device = words[words.index("dev") + 1] if "dev" in words else "wlan0"
        up = self.carries.get(device, False)
        if "link" in words:
            return f"3: {device}: <BROADCAST{',UP' if up else ''}> mtu 1500"
        if "addr" in words and up:
            return f"3: {device} inet {self.interfaces[device]}/24 scope global"
        return ""

    def keep(self, name: str, text: str) -> str:
        """Return the path of a kept file; store the agent's configuration in `config`."""
        if name == "agent.json":
            self.config = json.loads(text)
        return f"/kept/{name}"

    def push(self, source: Path, target: str) -> None:
        """Raise NotImplementedError: no cell pushes files."""
        raise NotImplementedError

    def pull(self, source: str, target: Path) -> None:
        """Raise NotImplementedError: no cell pulls files."""
        raise NotImplementedError

    def ip(self, *commands: str) -> None:
        """Record the commands; carry out those that set a link up or down."""
        self.script("phone.ip")
        for words in map(str.split, commands):
            if words[:2] == ["link", "set"]:
                self.carries[words[2]] = words[3] == "up"

    def prefer(self, interface: str) -> None:
        """Move the default route to an interface.

        Raises:
            DeviceError: the interface is down.
        """
        if not self.carries[interface]:
            raise DeviceError("phone", f"no route over {interface}")
        self.script(f"phone.prefer {interface}")
        self.default = interface

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Keep the sizes of receive buffers; other kernel parameters have no effect here."""
        self.buffers = str(values.get("net.ipv4.tcp_rmem", self.buffers))

    def counters(self) -> Mapping[str, int]:
        """Return kernel counters."""
        self.script("phone.counters")
        counts = dict(self._counters)
        for name, grown in self.moved.items():
            self._counters[name] = self._counters.get(name, 0) + grown
        return counts
