"""Define the interface between adbd and the device behind it."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Channel:
    """A running program on the device, with its streams.

    Attributes:
        process: the program.
        terminal: descriptor of the master side of the program's pseudo-terminal; None: its streams are pipes.
    """

    process: asyncio.subprocess.Process
    terminal: int | None = None


class Backend(Protocol):
    """The device behind adbd."""

    @property
    def banner(self) -> bytes:
        """Return the payload of the CNXN message that adbd sends."""

    @property
    def trusted_keys(self) -> Sequence[str] | None:
        """Return the public keys of trusted hosts; None: every host is trusted."""

    def offer_key(self, key: str) -> bool:
        """Ask the device's user about the key of an unknown host. Return whether the user accepts it."""

    async def spawn(
        self, command: str, *, terminal: bool, merged: bool, env: Mapping[str, str] | None = None
    ) -> Channel:
        """Start a command line in the device's shell; "" starts an interactive shell.

        Args:
            command: argument of ``sh -c``.
            terminal: give the program its own pseudo-terminal.
            merged: write its standard error to its standard output.
            env: additions to its environment.
        """

    async def on_files(self, action: Callable[[], Result]) -> Result:
        """Run `action` with the device's file system, and with the rights of adb's user."""

    async def dial(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, inside the device, to ``tcp:PORT``, ``localabstract:NAME`` or ``localfilesystem:PATH``.

        Raises:
            OSError: no socket listens there.
            ValueError: the kind of address is unknown.
        """

    def listen(self, address: str) -> socket.socket:
        """Listen inside the device at ``tcp:PORT`` or ``localabstract:NAME``. Return the socket. Raises like `dial`."""

    def request(self, service: str) -> str:
        """Handle ``reboot:``, ``root:``, ``unroot:``, ``tcpip:PORT`` or ``usb:``. Return adbd's answer.

        Effects on adbd itself happen after the answer has been sent. Raises ValueError for other services.
        """

    async def delay(self) -> None:
        """Wait before a message is handled; returns at once unless the device is made slow."""


def as_path(name: bytes) -> Path:
    """Decode a path from the protocol."""
    return Path(name.decode("utf-8", "surrogateescape"))
