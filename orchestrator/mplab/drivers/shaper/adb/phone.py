"""What shaping needs of a phone that a run drives by adb."""

from collections.abc import Sequence
from typing import Protocol

from mplab.base.machine import CommandResult
from mplab.base.undo import Command


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


def adb_where(serial: str) -> str:
    """Return how a phone is reached whose root shell is had by adb."""
    return f"adb {serial}"
