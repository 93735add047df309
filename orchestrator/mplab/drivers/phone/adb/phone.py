"""Implement `Phone` by adb, over USB or TCP."""

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
from mplab.drivers.phone.adb.interfaces import Interface, choose, parse_addresses
from mplab.drivers.phone.adb.later import later_command
from mplab.drivers.phone.adb.link import Forwards, Link, only_serial
from mplab.drivers.phone.adb.process import AdbProcess
from mplab.drivers.phone.adb.programs import FOLDER, PhonePrograms
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.phone.adb.root import Root, RootWish, find_root, give_up_adb_root, still_root
from mplab.drivers.phone.adb.routing import Routing
from mplab.drivers.phone.adb.server import AdbServer
from mplab.drivers.phone.protocol import PhoneIdentity

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.routing import Routing

_DENIED_CODES = (1, 13, 126, 255)


@dataclass(frozen=True)
class AdbSettings:
    """Settings of a phone that adb controls: serial, interfaces, and method of root access.

    Attributes:
        serial: serial number, or ``host:port``; "": the only phone that the server sees.
        interfaces: path (``wifi``, ``lte``) → the phone's interface; paths that are not listed are detected.
        root: requested method of root access; ``none``: do not use root.
    """

    serial: str = ""
    interfaces: Mapping[str, str] = field(default_factory=dict)
    root: RootWish = "auto"


class AdbPhone:
    """`Phone` over adb. At the end of its context, all changes on the phone are undone, last change first.

    Args:
        name: name in messages.
        server: a running adb server; several phones may share it.
        settings: serial, interfaces and root access.
        journal: stores the undo of changes on the phone, for the case that this process is killed.
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
        """Undo of all changes, run when the phone is released."""
        self.quarantine = Quarantine(server.home / "quarantine")
        """List of phones that must not be used until a person has checked them, e.g. because an undo failed."""
        self.root = Root.NONE
        """Method of root access; `Root.NONE`: commands run as adb's shell user."""

    # --- life cycle

    def __enter__(self) -> Self:
        """Connect the phone; find its method of root access and its interfaces.

        Raises:
            LabNotReadyError: the phone is missing, has not authorized this host, or is not supported.
            DeviceError: the phone was lost.
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
        """Stop processes on the phone and undo all changes; quarantine the phone when an undo fails.

        Raises:
            UndoError: a change could not be undone, and no other exception is being raised.
        """
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
        """Find root access and interfaces again after a reboot or a restart of adbd.

        Raises:
            LabNotReadyError: root access or an interface set in the lab file is missing.
            DeviceError: the phone is lost.
        """
        self.root = find_root(self.link, self._settings.root)
        self.programs.forget()
        self._make_folder()
        self.refresh()

    def refresh(self) -> None:
        """Read the interfaces again. Call it after a radio was switched, because interfaces then change.

        Raises:
            LabNotReadyError: an interface set in the lab file is missing.
            DeviceError: the phone is lost.
        """
        text = self.link.run("ip -o link show; ip -4 -o addr show").stdout.decode(errors="replace")
        self._seen = parse_addresses(text)
        self._devices = choose(self._seen, self._settings.interfaces)
        for path, device in self._settings.interfaces.items():
            if device not in self._seen:
                names = ", ".join(sorted(self._seen))
                raise LabNotReadyError(
                    f"{self.label}: no interface {device!r}, which is its {path}; there are: {names}"
                )

    # --- identity

    @property
    def name(self) -> str:
        """Name of the phone in the lab."""
        return self._name

    @property
    def label(self) -> str:
        """Name and serial of the phone, for messages."""
        return self.link.label

    @property
    def serial(self) -> str:
        """Serial of the phone, as adb prints it."""
        return self.link.serial

    @property
    def adb(self) -> adbutils.AdbDevice:
        """The phone as an object of adbutils, for the drivers of its screen."""
        return self.link.device

    @property
    def rooted(self) -> bool:
        """True when mplab runs commands on the phone as root."""
        return self.root is not Root.NONE

    @property
    def interfaces(self) -> Mapping[str, str]:
        """Interface (``wlan0``, ``rmnet0``) → IPv4 address; interfaces without an address are left out."""
        return {role: self._seen[device].address for role, device in self._devices.items() if self._has(device)}

    @property
    def devices(self) -> Mapping[str, str]:
        """Interface (``wlan0``, ``rmnet0``) → its name on the phone, e.g. ``rmnet_data2``."""
        return dict(self._devices)

    def identity(self) -> PhoneIdentity:
        """Return name, model, Android version and kernel. Raises DeviceError when the phone is lost."""
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
        """Run a command on the phone (as root if the phone is rooted) and wait for it.

        Raises:
            DeviceError: the phone is lost, the command takes longer than `timeout_s`, or, with `check`, its exit code
                is not 0.
        """
        output = self.link.run(self.root.line(shlex.join(argv)), stdin=stdin.encode(), timeout_s=timeout_s)
        result = CommandResult(
            output.exit_code, output.stdout.decode(errors="replace"), output.stderr.decode(errors="replace")
        )
        if check and result.exit_code != 0:
            self.check_root(result.exit_code)
            raise DeviceError(
                self.label, "a command failed", command=tuple(argv), exit_code_found=result.exit_code,
                stderr=result.stderr or result.stdout,
            )  # fmt: skip
        return result

    def script(self, text: str, *, timeout_s: float = 30.0, check: bool = True) -> CommandResult:
        """Run lines of the phone's shell, as root if the phone is rooted. Raises DeviceError as `shell` does."""
        return self.shell(["sh", "-c", text], timeout_s=timeout_s, check=check)

    def check_root(self, exit_code: int = _DENIED_CODES[0]) -> None:
        """Raise DeviceError when root access was withdrawn after it had been granted.

        Root access is tested only if `exit_code`, which a failed command returned, is typical of a denied permission.
        """
        if self.rooted and exit_code in _DENIED_CODES and not still_root(self.link, self.root):
            text = (
                f"root was withdrawn ('{self.root.value}' no longer works): allow it again in the phone's root manager"
            )
            raise DeviceError(self.label, text)

    def program(self, program: Program) -> str:
        """Return the path or name of a program on the phone. A program of mplab is first copied to the phone.

        Raises:
            LabNotReadyError: the phone does not have the program.
            DeviceError: the program could not be copied.
        """
        return self.programs.path(program)

    def spawn(self, argv: Sequence[str], *, log: Path) -> AdbProcess:
        """Start a program on the phone, as root if the phone is rooted. The program ends with the connection.

        Raises:
            DeviceError: the program could not be started.
        """
        process = AdbProcess(
            self.link, argv, log=log, as_root=self.root.line,
            kill=lambda name, pid: self.shell(["kill", f"-{name}", str(pid)], check=False),
        )  # fmt: skip
        self._processes = [*(running for running in self._processes if running.poll() is None), process]
        return process

    def keep(self, name: str, text: str) -> str:
        """Write `text` to a private file on the phone and return its path.

        Only root can read the file; without root, only adb's shell user can. The file is deleted when the phone is
        released.

        Raises:
            DeviceError: the file could not be written.
        """
        return self.files.keep(name, text)

    def outbox(self, target: Path) -> str:
        """Return a new path on the phone for a file that a program will write; `bring` copies this file to `target`."""
        return self.files.outbox(target, busy=any(process.poll() is None for process in self._processes))

    def bring(self, target: Path) -> None:
        """Copy the file at the `outbox` path of `target` to the host file `target`; do nothing if the file is missing.

        Raises:
            DeviceError: the copy failed.
        """
        self.files.bring(target)

    def push(self, source: Path, target: str) -> None:
        """Copy a host file to the phone. Raises DeviceError when the copy fails."""
        self.files.push(source, target)

    def pull(self, source: str, target: Path) -> None:
        """Copy a file from the phone to the host. Raises DeviceError when the copy fails."""
        self.files.pull(source, target)

    # --- network

    def ip(self, *commands: str) -> None:
        """Run ``ip`` commands as one batch; ``dev rmnet0`` means the phone's cellular interface.

        Raises:
            DeviceError: a command failed.
        """
        lines = [" ".join(self._devices.get(word, word) for word in command.split()) for command in commands]
        if lines:
            self.shell([self.program(IP), "-batch", "-"], stdin="\n".join(lines) + "\n")

    def prefer(self, interface: str) -> None:
        """Route new connections of the phone over `interface`. Raises DeviceError if it has no default route."""
        if self._routing is None:
            self._routing = Routing(self)
        self._routing.set_default(next(path for path, role in INTERFACES.items() if role == interface))

    def sysctl(self, values: Mapping[str, object]) -> None:
        """Set kernel parameters of the phone. Raises DeviceError when one cannot be written."""
        lines = [
            f"echo {shlex.quote(str(value))} > /proc/sys/{key.replace('.', '/')}\n" for key, value in values.items()
        ]
        self.script("set -e\n" + "".join(lines))

    def counters(self) -> Mapping[str, int]:
        """Return counters of kernel and interfaces; names such as ``"rmnet0.rx_bytes"`` use mplab's interface names."""
        # Without root, each Android since 10 shows the shell less of /proc/net: missing counters are no error.
        text = self.shell(["cat", "/proc/net/netstat", "/proc/net/snmp"], check=self.rooted).stdout
        roles = {device: role for role, device in self._devices.items()}
        links = parse_interfaces(self.shell(["cat", "/proc/net/dev"], check=self.rooted).stdout)
        named = {f"{roles.get(key.rpartition('.')[0], key.rpartition('.')[0])}.{key.rpartition('.')[2]}": value
                 for key, value in links.items()}  # fmt: skip
        return parse_netstat(text) | named

    # --- changes to undo

    def register(self, name: str, script: str) -> None:
        """Register the undo `script`: it runs when the phone is released.

        If this process is killed, a later process runs it from the undo journal. `name` is for messages.
        """
        self.undo.register(name, lambda: self.script(script), commands=self.later(script))

    def put_setting(self, key: str, value: str) -> None:
        """Change a global setting of Android until the phone is released. Raises DeviceError when the phone refuses."""
        before = self.script(f"settings get global {key}").stdout.strip()
        if before == value:
            return
        back = f"settings put global {key} {shlex.quote(before)}"
        self.register(f"{self.label}: {key}", f"settings delete global {key}" if before == "null" else back)
        self.script(f"settings put global {key} {shlex.quote(value)}")

    def later(self, *scripts: str) -> list[Command]:
        """Return one command line per script, with which another process runs the script on this phone.

        The undo journal stores such command lines.
        """
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
        result = self.link.run(command)
        if result.exit_code != 0:
            stderr = result.stderr.decode(errors="replace")
            raise DeviceError(
                self.label, "a command failed", command=(command,), exit_code_found=result.exit_code, stderr=stderr
            )
