"""What adbd needs of the device behind it."""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Channel:
    """A program that runs on the device, by its three streams.

    Attributes:
        process: it.
        terminal: descriptor of the terminal's other end, or None when its streams are pipes.
    """

    process: asyncio.subprocess.Process
    terminal: int | None = None


class Backend(Protocol):
    """The device behind adbd."""

    @property
    def banner(self) -> bytes:
        """Payload of its CNXN."""

    @property
    def features(self) -> frozenset[str]:
        """What it announces."""

    @property
    def trusted_keys(self) -> Sequence[str] | None:
        """Public keys of the hosts it trusts; None: every host."""

    def offer_key(self, key: str) -> bool:
        """A host that it does not know shows its key: does its user accept?"""

    async def spawn(
        self, command: str, *, terminal: bool, merged: bool, env: Mapping[str, str] | None = None
    ) -> Channel:
        """Start a command line in the device's shell; "" is an interactive shell.

        Args:
            command: for ``sh -c``.
            terminal: it gets a terminal of its own.
            merged: standard error goes where standard output goes.
            env: added to its environment.
        """

    async def on_files(self, action: Callable[[], Result]) -> Result:
        """Run `action` where paths are those of the device, with the rights of adb's user."""

    async def dial(self, address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, inside the device, to ``tcp:PORT``, ``localabstract:NAME``, ``localfilesystem:PATH``.

        Raises:
            OSError: nobody listens there.
            ValueError: no such kind of address.
        """

    def listen(self, address: str) -> socket.socket:
        """A listening socket inside the device, at ``tcp:PORT`` or ``localabstract:NAME``. Raises as `dial` does."""

    def request(self, service: str) -> str:
        """``reboot:``, ``root:``, ``unroot:``, ``tcpip:PORT``, ``usb:``: what adbd says to it.

        What it does to adbd itself it does after the answer has been sent. Raises ValueError for anything else.
        """

    async def delay(self) -> None:
        """Wait as long as the device is slow."""


def as_path(name: bytes) -> Path:
    """A path as it was sent."""
    return Path(name.decode("utf-8", "surrogateescape"))
