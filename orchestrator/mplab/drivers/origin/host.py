"""Where the origin's servers run, and the servers there."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol


class ServerProcess(Protocol):
    """A running server."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM, wait, then SIGKILL; its exit code."""


class Host(Protocol):
    """Where the servers run: a node of the lab in which 10.65.0.0/16 is local."""

    def spawn(self, argv: Sequence[str], *, log: Path) -> ServerProcess:
        """Start a program; its output goes to `log`."""
