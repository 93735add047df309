"""Driver ``adb``: a phone that shapes its own paths; commands go to its root shell over the run's adb server."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from pydantic import BaseModel

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.findings import Finding
from mplab.base.machine import CommandResult
from mplab.base.undo import Command
from mplab.drivers.shaper.driver import PhoneShaperDriver
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc import guard
from mplab.drivers.shaper.tc.base import TC
from mplab.drivers.shaper.tc.capabilities import check_shaping, find_capabilities
from mplab.drivers.shaper.tc.machine import RootedPhone
from mplab.drivers.shaper.tc.shell import COMMAND_TIMEOUT_S, ConnectionLostError, check_result, whole_script
from mplab.userfiles.labs.machines import Section, ShapingMachine


class AdbLink(Protocol):
    """The connection to a phone on adb."""

    def state(self) -> str:
        """Return the connection state; ``device`` means connected."""

    def connect(self) -> None:
        """Connect adb to the phone. Raises LabNotReadyError or DeviceError when the connection fails."""


class PhoneOnAdb(Protocol):
    """Phone controlled by adb: the attributes and methods that the shaper uses."""

    @property
    def name(self) -> str:
        """Name of the phone in the lab file."""

    @property
    def serial(self) -> str:
        """Serial of the phone as adb prints it."""

    @property
    def rooted(self) -> bool:
        """True when `shell` runs commands as root."""

    @property
    def link(self) -> AdbLink:
        """The connection to the phone."""

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = ..., check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command on the phone as root; return its result.

        Raises:
            DeviceError: with `check`, the command failed.
        """

    def later(self, *scripts: str) -> Sequence[Command]:
        """Return command lines with which another process on this host runs `scripts` on the phone."""


def adb_where(serial: str) -> str:
    """Return the address of a phone's root shell over adb.

    mplab's lock for the phone is named after this address, so only one process at a time can hold the phone.
    """
    return f"adb {serial}"


DEAD_MAN_S = 60.0
"""Time without heartbeat after which the phone undoes its shaping, s; longer than a short loss of adb."""


class AdbShell:
    """`Shell` on a phone that a run already controls over adb."""

    def __init__(self, phone: PhoneOnAdb) -> None:
        self._phone = phone
        self.name = f"phone {phone.name}"

    @property
    def where(self) -> str:
        """Address of the phone: ``adb SERIAL``."""
        return adb_where(self._phone.serial)

    @property
    def alive(self) -> bool:
        """True while adb is connected to the phone."""
        return self._phone.link.state() == "device"

    def connect(self) -> None:
        """Connect adb to the phone, and check that it is rooted; see `Shell`."""
        self._phone.link.connect()
        if not self._phone.rooted:
            raise LabNotReadyError(f"{self.name} ({self.where}): not rooted, and only root can shape")

    def script(
        self, text: str, *arguments: str, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> CommandResult:
        """Run a script as root on the phone and wait for it; see `Shell`."""
        try:
            result = self._phone.shell(["sh"], stdin=whole_script(text, arguments), timeout_s=timeout_s, check=False)
        except DeviceError as error:
            raise ConnectionLostError(self.name, str(error)) from error
        return check_result(self.name, result, "a script") if check else result

    def close(self) -> None:
        """Do nothing: the adb connection belongs to the run and stays open."""


class AdbShapingPhone(RootedPhone):
    """`RootedPhone` that a run controls by adb. During the context, `owner` holds it: no other process can shape it.

    Args:
        phone: a connected phone.
        interfaces: interfaces of the phone to shape.
        owner: run or user that holds the phone.
    """

    def __init__(self, phone: PhoneOnAdb, *, owner: Owner, interfaces: Sequence[str]) -> None:
        shell = AdbShell(phone)
        super().__init__(
            shell.name,
            shell,
            interfaces=interfaces,
            dead_man_s=DEAD_MAN_S,
            restore_command=(),
            owner=owner,
        )
        self._restore_command = list(restore_later(phone, self.hold.owner))


def restore_later(phone: PhoneOnAdb, owner: str) -> Command:
    """Return a command line by which another process releases a phone from the hold named `owner`."""
    text = f"MPLAB_DIR={RootedPhone.state_directory}\n{guard.SCRIPT.read_text(encoding='utf-8')}"
    script = f"{whole_script(text, ('restore', owner))}code=$?\n[ $code = {guard.NOT_OURS} ] || exit $code\n"
    (command,) = phone.later(script)
    return command


class Adb(PhoneShaperDriver[BaseModel, PhoneOnAdb]):
    """`PhoneShaperDriver` for phones with ``driver: adb`` and root."""

    name = "adb"
    title = "a phone with driver: adb, by its own root shell"
    section: Section = "phones"
    settings = BaseModel
    method = "tc"
    abilities = TC

    def hold(self, phone: PhoneOnAdb, machine: ShapingMachine[BaseModel], owner: Owner) -> AdbShapingPhone:
        """Return a context that holds the phone: no other process can shape it; see `PhoneShaperDriver`."""
        return AdbShapingPhone(phone, owner=owner, interfaces=machine.interfaces)

    def check(self, phone: PhoneOnAdb, machine: ShapingMachine[BaseModel]) -> Iterator[Finding]:
        """Yield findings about the phone's shaping abilities for `mplab doctor`; see `PhoneShaperDriver`."""
        return check_shaping(find_capabilities(AdbShell(phone), machine.interfaces), machine.label)


DRIVER = Adb()
