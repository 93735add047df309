"""The ``Proxy`` protocol."""

from collections.abc import Mapping
from typing import Protocol

from mplab.drivers.capture import CapturePoint
from mplab.format.agentlog import LogRecord, SessionSettings


class Proxy(Protocol):
    """Accepts the agent's connections and opens plain TCP connections to the origin."""

    def start(self) -> None:
        """Start it and wait until it listens."""

    def stop(self) -> None:
        """End it; open connections are logged first."""

    def use(self, session: SessionSettings) -> None:
        """Have these settings for the sessions that begin from now on; those that there are may end."""

    def log_end(self) -> int:
        """A mark of the end that the connection log has now."""

    def logs_since(self, mark: int) -> list[LogRecord]:
        """The records that the connection log got after `mark`, in order."""

    def counters(self) -> Mapping[str, int]:
        """The kernel counters of its host."""

    @property
    def capture_point(self) -> CapturePoint:
        """Where its side of the phone's traffic can be captured."""
