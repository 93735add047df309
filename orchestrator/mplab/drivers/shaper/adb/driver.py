"""The kind ``adb``: a phone that shapes itself while a run drives it by adb."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import BaseModel

from mplab.base.findings import Finding
from mplab.base.machine import CommandResult
from mplab.base.undo import Command
from mplab.drivers.shaper.driver import PhoneDriver
from mplab.drivers.shaper.tc.base import TC
from mplab.drivers.shaper.tc.capabilities import look
from mplab.drivers.shaper.tc.check import check_shaping
from mplab.userfiles.machines import Machine, Section

if TYPE_CHECKING:
    from mplab.drivers.shaper.adb.place import AdbShapingPhone
    from mplab.drivers.shaper.owner import Owner


class AdbLink(Protocol):
    """The connection to a phone on adb."""

    def state(self) -> str:
        """``device``: it is connected."""

    def connect(self) -> None:
        """Connect it. Raises LabNotReadyError, DeviceError."""


class PhoneOnAdb(Protocol):
    """What shaping needs of a phone that a run drives by adb."""

    @property
    def name(self) -> str:
        """In the lab file."""

    @property
    def serial(self) -> str:
        """As adb has it."""

    @property
    def rooted(self) -> bool:
        """Its commands are root's."""

    @property
    def link(self) -> AdbLink:
        """The connection."""

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = ..., check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command as root. Raises DeviceError."""

    def later(self, *scripts: str) -> Sequence[Command]:
        """Return the command lines that run `scripts` on it from another process."""


class Adb(PhoneDriver[BaseModel, PhoneOnAdb]):
    """`PhoneDriver` of phones with ``driver: adb`` and root."""

    title = "a phone with driver: adb, by its own root shell"
    section: Section = "phones"
    settings = BaseModel
    method = "tc"
    abilities = TC

    def hold(self, phone: PhoneOnAdb, machine: Machine[BaseModel], owner: "Owner") -> "AdbShapingPhone":
        """See `PhoneDriver`."""
        from mplab.drivers.shaper.adb.place import AdbShapingPhone  # noqa: PLC0415 - it imports this module

        return AdbShapingPhone(phone, owner=owner, interfaces=machine.interfaces)

    def check(self, phone: PhoneOnAdb, machine: Machine[BaseModel]) -> Iterator[Finding]:
        """See `PhoneDriver`."""
        from mplab.drivers.shaper.adb.place import AdbShell  # noqa: PLC0415 - it imports this module

        return check_shaping(look(AdbShell(phone), machine.interfaces, openwrt=False), machine.label)


def adb_where(serial: str) -> str:
    """Return how a phone is reached whose root shell is had by adb."""
    return f"adb {serial}"


DRIVER = Adb()
