"""`Phone` on a cable, or over TCP, by adb."""

import contextlib
import secrets
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import adbutils

from mplab.base.counters import parse_interfaces, parse_netstat
from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.machine import CommandResult
from mplab.base.paths import INTERFACES
from mplab.base.programs import IP, Program
from mplab.base.undo import Command, UndoError, UndoJournal, UndoStack
from mplab.drivers.phone.adb.files import PhoneFiles
from mplab.drivers.phone.adb.forward import Forwards
from mplab.drivers.phone.adb.interfaces import Interface, choose, parse_addresses
from mplab.drivers.phone.adb.later import later_command
from mplab.drivers.phone.adb.link import Link, only_serial
from mplab.drivers.phone.adb.process import AdbProcess
from mplab.drivers.phone.adb.programs import FOLDER, PhonePrograms
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.phone.adb.root import Root, RootWish, find_root, give_up_adb_root, still_root
from mplab.drivers.phone.adb.server import AdbServer
from mplab.drivers.phone.protocol import PhoneIdentity

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.routing import Routing

_DENIED_CODES = (1, 13, 126, 255)


@dataclass(frozen=True)
class AdbSettings:
    """How a phone is used.

    Attributes:
        serial: serial number, or ``host:port``; "": the only one that the server sees.
        interfaces: path (``wifi``, ``lte``) → the phone's interface, where it is not to be guessed.
        root: the way to root that is to be used, or none of them.
    """

    serial: str = ""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    root: RootWish = "auto"


class AdbPhone:
    """One phone; a context manager: what was changed is changed back when it ends, last change first.

    Args:
        name: in messages.
        server: an adb server that runs; several phones may share it.
        settings: how it is used.
        journal: takes the undo of its changes, for when this process is killed.
    """

    def __init__(
        self, name: str, server: AdbServer, settings: AdbSettings | None = None, *, journal: UndoJournal | None = None
    ) -> None:
        self._name = name
        self._server = server
        self._settings = settings or AdbSettings()
        self._folder = f"{FOLDER}/run-{secrets.token_hex(4)}"
        self._devices: dict[str, str] = {}
        self._seen: dict[str, Interface] = {}
        self._processes: list[AdbProcess] = []
        self._routing: Routing | None = None
        self.undo = UndoStack(journal)
        """What is taken back when it is given back."""
        self.quarantine = Quarantine(server.home / "quarantine")
        """Where it is put when it cannot be used any more."""
        self.root = Root.NONE
        """How it gives root; `Root.NONE`: its commands are run by the shell's user."""

    # --- its time

    def __enter__(self) -> Self:
        """Connect, find out how it gives root, and which its interfaces are.

        Raises:
            LabNotReadyError: it is not there, does not trust this host, or is none that can be used.
            DeviceError: it was lost meanwhile.
        """
        try:
            self._begin()
        except BaseException:
            self.undo.undo_all()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what runs there, and undo; a phone that cannot be left as it was found is in quarantine then."""
        for process in self._processes:
            process.stop()
        if self.link.state() != "device":
            with contextlib.suppress(LabNotReadyError):
                self.link.connect()
        failures = self.undo.undo_all()
        if not failures:
            return
        text = f"not undone: {'; '.join(failures)}"
        self.quarantine.put(self.serial, text)
        if error is None:
            raise UndoError(text)
        error.add_note(text)

    def _begin(self) -> None:
        self.link = Link(self._server, self._settings.serial or only_serial(self._server, self._name), name=self._name)
        self.quarantine.check(self.serial, self.label)
        self.link.connect()
        self.forwards = Forwards(self.link, self.undo)
        self.link.wait_boot()
        features = self._features()
        if "shell_v2" not in features:
            raise LabNotReadyError(f"{self.label}: its adbd has no shell of version 2: Android 7 or later is needed")
        self.files = PhoneFiles(self.link, as_root=self._as_root, folder=self._folder, check_root=self.check_root)
        self.programs = PhonePrograms(self.link, lambda source, target: self.files.push(source, target, as_root=False))
        was_root = self.link.run("id -u").stdout.strip() == b"0"
        self.root = find_root(self.link, self._settings.root)
        if self.root is Root.ADBD and not was_root:
            self.undo.register(f"{self.label}: adb unroot", lambda: give_up_adb_root(self.link))
        self.register(f"{self.label}: files of this run", f"rm -rf {self._folder}")
        self._make_folder()
        self.refresh()

    def renew(self) -> None:
        """After a reboot, or another adbd: find root and interfaces again. Raises LabNotReadyError, DeviceError."""
        self.root = find_root(self.link, self._settings.root)
        self.programs.forget()
        self._make_folder()
        self.refresh()

    def refresh(self) -> None:
        """Look at its interfaces again: they come and go with its radios. Raises DeviceError."""
        text = self.link.run("ip -o link show; ip -4 -o addr show").stdout.decode(errors="replace")
        self._seen = parse_addresses(text)
        self._devices = choose(self._seen, self._settings.interfaces)
        for path, device in self._settings.interfaces.items():
            if device not in self._seen:
                there = ", ".join(sorted(self._seen))
                raise LabNotReadyError(
                    f"{self.label}: no interface {device!r}, which is its {path}; there are: {there}"
                )

    # --- what it is

    @property
    def name(self) -> str:
        """Its name in the lab."""
        return self._name

    @property
    def label(self) -> str:
        """Its name with its serial, for messages."""
        return self.link.label

    @property
    def serial(self) -> str:
        """As adb has it."""
        return self.link.serial

    @property
    def adb(self) -> adbutils.AdbDevice:
        """For what drives its screen."""
        return self.link.device

    @property
    def rooted(self) -> bool:
        """Its commands are root's."""
        return self.root is not Root.NONE

    @property
    def interfaces(self) -> Mapping[str, str]:
        """``wlan0``, ``rmnet0`` → IPv4 address, of those that have one; see `devices`."""
        return {role: self._seen[device].address for role, device in self._devices.items() if self._has(device)}

    @property
    def devices(self) -> Mapping[str, str]:
        """``wlan0``, ``rmnet0`` → what the phone calls it: ``rmnet_data2``."""
        return dict(self._devices)

    def identity(self) -> PhoneIdentity:
        """Model, Android, kernel."""
        names = ("ro.product.manufacturer", "ro.product.model", "ro.build.version.release", "ro.build.display.id")
        text = self.link.run("; ".join([*(f"getprop {name}" for name in names), "uname -r"])).stdout.decode()
        manufacturer, model, release, build, kernel = (line.strip() for line in text.splitlines()[:5])
        return PhoneIdentity(
            name=self.name, model=f"{manufacturer} {model}", os=f"Android {release} ({build})", kernel=kernel
        )

    # --- commands and files

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command, as root where there is root, and wait. Raises DeviceError."""
        done = self.link.run(self.root.line(shlex.join(argv)), stdin=stdin.encode(), timeout_s=timeout_s)
        result = CommandResult(
            done.exit_code, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
        if check and result.exit_code != 0:
            self.check_root(result.exit_code)
            raise DeviceError(
                self.label, "a command failed", command=tuple(argv), exit_code_found=result.exit_code,
                stderr=result.stderr or result.stdout,
            )  # fmt: skip
        return result

    def script(self, text: str, *, timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run lines of the phone's shell, as root where there is root. Raises DeviceError."""
        return self.shell(["sh", "-c", text], timeout_s=timeout_s, check=check)

    def check_root(self, exit_code: int = _DENIED_CODES[0]) -> None:
        """Raises DeviceError when root was there and is not any more."""
        if self.rooted and exit_code in _DENIED_CODES and not still_root(self.link, self.root):
            text = f"root was withdrawn ('{self.root.value}' works no more): allow it again in the phone's root manager"
            raise DeviceError(self.label, text)

    def program(self, program: Program) -> str:
        """What calls a program there; mplab's own are brought first. Raises LabNotReadyError, DeviceError."""
        return self.programs.path(program)

    def spawn(self, argv: Sequence[str], *, log: Path) -> AdbProcess:
        """Start a program, as root where there is root; it ends when the connection does. Raises DeviceError."""
        process = AdbProcess(
            self.link, argv, log=log, as_root=self.root.line,
            kill=lambda name, pid: self.shell(["kill", f"-{name}", str(pid)], check=False),
        )  # fmt: skip
        self._processes = [*(one for one in self._processes if one.poll() is None), process]
        return process

    def keep(self, name: str, text: str) -> str:
        """Write a file for root alone; without root, for the shell's user alone. It goes with the phone's time."""
        return self.files.keep(name, text)

    def outbox(self, target: Path) -> str:
        """Where a program there writes what `bring` makes `target`: a new file each time."""
        return self.files.outbox(target, busy=any(process.poll() is None for process in self._processes))

    def bring(self, target: Path) -> None:
        """Make the host file what its outbox holds now; nothing when there is none. Raises DeviceError."""
        self.files.bring(target)

    def push(self, source: Path, target: str) -> None:
        """Copy a host file there. Raises DeviceError."""
        self.files.push(source, target)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from there. Raises DeviceError."""
        self.files.pull(source, target)

    # --- its network

    def ip(self, *commands: str) -> None:
        """Run ``ip`` commands as one batch; ``dev rmnet0`` is the phone's cellular interface. Raises DeviceError."""
        lines = [" ".join(self._devices.get(word, word) for word in command.split()) for command in commands]
        if lines:
            self.shell([self.program(IP), "-batch", "-"], stdin="\n".join(lines) + "\n")

    def prefer(self, interface: str) -> None:
        """Make the default route that of an interface. Raises DeviceError: it has none."""
        from mplab.drivers.phone.adb.routing import Routing  # noqa: PLC0415 - it is about this class

        if self._routing is None:
            self._routing = Routing(self)
        self._routing.set_default(next(path for path, role in INTERFACES.items() if role == interface))

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set kernel parameters. Raises DeviceError."""
        lines = [
            f"echo {shlex.quote(str(value))} > /proc/sys/{key.replace('.', '/')}\n" for key, value in values.items()
        ]
        self.script("set -e\n" + "".join(lines))

    def counters(self) -> Mapping[str, int]:
        """Kernel counters, and those of its interfaces: ``"rmnet0.rx_bytes"``, whatever the phone calls it."""
        # Without root, Android 10 and later show the shell less and less of /proc/net: there is what there is.
        text = self.shell(["cat", "/proc/net/netstat", "/proc/net/snmp"], check=self.rooted).stdout
        roles = {device: role for role, device in self._devices.items()}
        links = parse_interfaces(self.shell(["cat", "/proc/net/dev"], check=self.rooted).stdout)
        named = {f"{roles.get(key.rpartition('.')[0], key.rpartition('.')[0])}.{key.rpartition('.')[2]}": value
                 for key, value in links.items()}  # fmt: skip
        return parse_netstat(text) | named

    # --- changes

    def register(self, name: str, script: str) -> None:
        """Have `script` run when the phone is given back, also by a later process when this one is killed."""
        self.undo.register(name, lambda: self.script(script), commands=self.later(script))

    def put_setting(self, key: str, value: str) -> None:
        """Change a global setting of Android until the phone is released. Raises DeviceError."""
        before = self.script(f"settings get global {key}").stdout.strip()
        if before == value:
            return
        back = f"settings put global {key} {shlex.quote(before)}"
        self.register(f"{self.label}: {key}", f"settings delete global {key}" if before == "null" else back)
        self.script(f"settings put global {key} {shlex.quote(value)}")

    def later(self, *scripts: str) -> list[Command]:
        """Command lines that run `scripts` on this phone without this process: for an undo journal."""
        return [later_command(self.link, self.root.name, script) for script in scripts]

    def _as_root(self, command: str) -> str:
        return self.root.line(command)

    def _features(self) -> set[str]:
        return set(self.link.ask(f"host-serial:{self.serial}:features")[4:].split(","))

    def _make_folder(self) -> None:
        self._run_plain(f"mkdir -p {FOLDER}")
        self.script(f"mkdir -p {self._folder}/out && chmod 777 {self._folder} {self._folder}/out")

    def _has(self, device: str) -> bool:
        return device in self._seen and bool(self._seen[device].address)

    def _run_plain(self, command: str) -> None:
        done = self.link.run(command)
        if done.exit_code != 0:
            stderr = done.stderr.decode(errors="replace")
            raise DeviceError(
                self.label, "a command failed", command=(command,), exit_code_found=done.exit_code, stderr=stderr
            )
