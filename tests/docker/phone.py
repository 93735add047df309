"""A test phone with two paths: a namespace that is wired to an engine's host."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mplab.base.counters import parse_netstat
from mplab.base.machine import CommandResult
from mplab.base.nodes import Node, NodeProcess
from mplab.base.polling import wait_ready
from mplab.base.programs import CURL, MPFLEX
from mplab.drivers.origin.cache import stream_bytes

SIZE = 5_000_000
"""Size of a download, bytes."""
SOCKS = "127.0.0.1:1080"
_TABLES = {"wlan0": 101, "rmnet0": 102}


class PhoneNode:
    """The phone; it exists until the end of its context.

    Args:
        directory: for configurations and logs.
        host_pid: a process of the namespaces that create the links.
    """

    def __init__(self, directory: Path, host_pid: int) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self._host = Node("host", host_pid)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        holder = _hold()
        self._stack.callback(_end, holder)
        self.node = Node("phone", holder.pid)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def wire(self, server: Node, interface: str, address: str, *, bridge: str = "", gateway: str = "") -> None:
        """Connect `interface` to `server`: to its bridge, or to a new interface there with the address `gateway`."""
        there = f"to-{interface}"
        self._host.ip(f"link add {interface} netns {self.node.pid} type veth peer name {there} netns {server.pid}")
        server.ip(*([f"link set {there} master {bridge}"] if bridge else [f"addr add {gateway}/24 dev {there}"]))
        server.ip(f"link set {there} up")
        table, network = _TABLES[interface], address.rpartition(".")[0] + ".0/24"
        self.node.ip(
            f"addr add {address}/24 dev {interface}",
            f"link set {interface} up",
            f"route add {network} dev {interface} table {table}",
            f"rule add from {address} table {table} priority {table}",
        )
        if gateway:
            self.node.ip(
                f"route add default via {gateway} dev {interface} metric {table}",
                f"route add default via {gateway} dev {interface} table {table}",
            )
        self._stack.callback(server.run, ["ip", "link", "del", there], check=False)

    def use_both_paths(self, second: str, *, dev: str = "rmnet0") -> None:
        """Let MPTCP open subflows from the address `second` too, and to the addresses that the server advertises."""
        self.node.ip("mptcp limits set subflow 4 add_addr_accepted 4", f"mptcp endpoint add {second} dev {dev} subflow")

    def agent_config(self, proxy: str, secret_file: Path, transport: str, **others: Any) -> Path:
        """Write a configuration of the agent and return its path."""
        settings = {
            "listen": {"socks": SOCKS},
            "dns_server": "10.65.0.53:53",
            "proxy": proxy,
            "transport": transport,
            "secret_file": str(secret_file),
            "log": str(self.directory / "agent.jsonl"),
            **others,
        }
        path = self.directory / f"{transport}.json"
        path.write_text(json.dumps(settings))
        return path

    def check(self, config: Path, *arguments: str) -> Mapping[str, Any]:
        """Return the result of `mpflex check`."""
        argv = [str(MPFLEX.path()), "check", "--config", str(config), "--timeout", "10s", *arguments]
        completed = self.node.run(argv, check=False)
        assert completed.exit_code == 0, completed.stderr + completed.stdout
        result: Mapping[str, Any] = json.loads(completed.stdout)
        return result

    def start_agent(self, config: Path) -> NodeProcess:
        """Start the agent, which runs until the phone ends."""
        log = self.directory / "agent.log"
        since = log.stat().st_size if log.exists() else 0
        process = self.node.spawn([str(MPFLEX.path()), "agent", "--config", str(config)], log=log)
        self._stack.callback(process.stop)
        wait_ready(process, log, name="mpflex agent", since=since)
        return process

    def start(self, argv: Sequence[str]) -> None:
        """Start a program that runs until the phone ends."""
        process = self.node.spawn(argv, log=self.directory / "program.log")
        self._stack.callback(process.stop)

    def curl(self, url: str, *arguments: str) -> CommandResult:
        """Request `url` by SOCKS, which also resolves the name; the answer is in the file `fetched`."""
        argv = [str(CURL.path()), "-q", "--silent", "--show-error", "--fail", "--socks5-hostname", SOCKS]
        argv += ["--max-time", "30", "--output", str(self.fetched), *arguments, url]
        return self.node.run(argv, timeout_s=60, check=False)

    @property
    def fetched(self) -> Path:
        return self.directory / "fetched"

    def get(self, url: str, *arguments: str) -> Path:
        """Fetch a file by SOCKS and return its path."""
        self.fetched.unlink(missing_ok=True)
        answer = self.curl(url, *arguments)
        assert answer.exit_code == 0, f"{url}: {answer.stderr}"
        return self.fetched

    def bytes_received(self) -> dict[str, int]:
        """Return the bytes that each path has carried to the phone."""
        lines = self.node.run(["cat", "/proc/net/dev"]).stdout.splitlines()
        received = {line.split(":")[0].strip(): int(line.split(":")[1].split()[0]) for line in lines if ":" in line}
        return {name: received[name] for name in _TABLES}

    def counters(self) -> Mapping[str, int]:
        """Return the counters of the kernel."""
        return parse_netstat(self.node.run(["cat", "/proc/net/netstat", "/proc/net/snmp"]).stdout)

    def shadowsocks(self, server_config: Path, server: str) -> list[str] | None:
        """Return the command line of ShadowSocks' client with SOCKS, or None if it is not installed."""
        if (program := shutil.which("ss-local")) is None:
            return None
        settings = json.loads(server_config.read_text()) | {"server": server, "local_address": "127.0.0.1"}
        config = self.directory / "shadowsocks.json"
        config.write_text(json.dumps(settings | {"local_port": int(SOCKS.rpartition(":")[2])}))
        return [program, "--mptcp", "-c", str(config)]


def _hold() -> subprocess.Popen[bytes]:
    """Start a process that keeps a network and a mount namespace open."""
    script = "ip link set lo up && echo ready && exec sleep infinity"
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "--", "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def download_over_both(phone: PhoneNode, tries: int = 8) -> dict[str, int]:
    """Download until both paths carry a part, at most `tries` times; return each path's bytes in the last download.

    Nothing shapes these paths, so sometimes one path is fast enough to carry everything.
    """
    carried: dict[str, int] = {}
    for _ in range(tries):
        before = phone.bytes_received()
        got = phone.get(f"http://dl.lab/{SIZE}").read_bytes()
        carried = {name: count - before[name] for name, count in phone.bytes_received().items()}
        assert hashlib.sha256(got).digest() == hashlib.sha256(stream_bytes(SIZE)).digest()
        assert sum(carried.values()) > SIZE
        if min(carried.values()) > 0.01 * SIZE:
            break
    return carried
