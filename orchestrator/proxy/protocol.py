"""The ``Proxy`` protocol."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from orchestrator.capture import CapturePoint


class Proxy(Protocol):
    """Accepts the agent's connections and opens plain TCP connections to the origin."""

    def start(self) -> None:
        """Start it and wait until it listens."""

    def stop(self) -> None:
        """End it; open connections are logged first."""

    def status(self) -> Mapping[str, Any]:
        """Whether it runs, and where it listens."""

    def logs_since(self, mark: int) -> tuple[str, int]:
        """The connection log after `mark` (0: from the beginning), and the mark of its end."""

    def counters(self) -> Mapping[str, int]:
        """The kernel counters of its host."""

    @property
    def capture_point(self) -> CapturePoint:
        """Where its side of the phone's traffic can be captured."""

    @property
    def log_file(self) -> Path:
        """Its connection log."""
