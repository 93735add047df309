"""Define the interface that a device offers to its adbd."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Channel:
    """A program that runs on the device for a host, with its streams.

    Attributes:
        process: process of the program.
        terminal: file descriptor of the master side of the program's pseudo-terminal; None: its streams are pipes.
    """

    process: asyncio.subprocess.Process
    terminal: int | None = None


class Backend(Protocol):
    """Interface of a device to its adbd."""

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
        """Start a command line in the device's shell.

        Args:
            command: argument of ``sh -c``; "": start an interactive shell.
            terminal: True: the shell gets its own pseudo-terminal.
            merged: True: standard error of the shell goes to its standard output.
            env: additions to the environment of the shell.
        """

    async def on_files(self, action: Callable[[], Result]) -> Result:
        """Call `action` in a thread that sees the device's files, with the rights of adb's user. Return its result."""

    async def dial(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a socket inside the device: ``tcp:PORT``, ``localabstract:NAME`` or ``localfilesystem:PATH``.

        Raises:
            OSError: no socket listens at the address.
            ValueError: the kind of address is unknown.
        """

    def listen(self, address: str) -> socket.socket:
        """Return a socket that listens inside the device, at ``tcp:PORT`` or ``localabstract:NAME``.

        Raises:
            OSError: the address is in use.
            ValueError: the kind of address is unknown.
        """

    def request(self, service: str) -> str:
        """Handle a host's request ``reboot:``, ``root:``, ``unroot:``, ``tcpip:PORT`` or ``usb:``. Return the answer.

        Restarts of adbd and of the device begin after the answer has been sent. Raises ValueError for other requests.
        """

    async def delay(self) -> None:
        """Wait before adbd handles a message, if a fault has made the device slow; otherwise return at once."""


def as_path(name: bytes) -> Path:
    """Convert a path in adb's protocol to a `Path`."""
    return Path(name.decode("utf-8", "surrogateescape"))
