"""Protocols of the machine on which the origin's servers run, and of a running server."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class ServerProcess(Protocol):
    """A running server."""

    @property
    def pid(self) -> int:
        """Process id."""

    def poll(self) -> int | None:
        """Return the exit code, or None while the server runs."""

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM, wait up to `timeout_s`, then send SIGKILL; return the exit code."""


class Host(Protocol):
    """Machine on which the servers run: a node of the lab in which 10.65.0.0/16 is local."""

    def spawn(self, argv: Sequence[str], *, log: Path) -> ServerProcess:
        """Start a program and write its output to `log`."""
