"""Protocols of a phone on adb, as far as shaping uses it."""

from collections.abc import Sequence
from typing import Protocol

from mplab.base.machine import CommandResult
from mplab.base.undo import Command


class AdbLink(Protocol):
    """The connection to a phone on adb."""

    def state(self) -> str:
        """Return the connection state; ``device`` means connected."""

    def connect(self) -> None:
        """Connect the phone. Raises LabNotReadyError or DeviceError when the connection fails."""


class PhoneOnAdb(Protocol):
    """Phone on adb, as far as shaping uses it."""

    @property
    def name(self) -> str:
        """Name in the lab file."""

    @property
    def serial(self) -> str:
        """Serial as adb prints it."""

    @property
    def rooted(self) -> bool:
        """True when commands run as root."""

    @property
    def link(self) -> AdbLink:
        """The connection to the phone."""

    def shell(
        self, argv: Sequence[str], *, timeout_s: float = ..., check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command as root. Raises DeviceError when it fails."""

    def later(self, *scripts: str) -> Sequence[Command]:
        """Return command lines for this host with which another process runs `scripts` on the phone."""


def adb_where(serial: str) -> str:
    """Return the address of a phone's root shell over adb, which names its lock."""
    return f"adb {serial}"
