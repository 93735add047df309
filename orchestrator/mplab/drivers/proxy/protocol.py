"""The ``Proxy`` protocol."""

from collections.abc import Mapping
from typing import Protocol

from mplab.drivers.capture import CapturePoint
from mplab.format.agentlog import LogRecord, SessionSettings


class Proxy(Protocol):
    """Server that accepts the agent's connections and opens plain TCP connections to the origin."""

    def start(self) -> None:
        """Start the proxy and wait until it listens."""

    def stop(self) -> None:
        """Stop the proxy. Before it ends, it logs the connections that are still open."""

    def use(self, session: SessionSettings) -> None:
        """Apply settings to sessions that start after this call; existing sessions may end."""

    def log_end(self) -> int:
        """Return a mark for the current end of the connection log."""

    def logs_since(self, mark: int) -> list[LogRecord]:
        """Return the records written to the connection log after `mark`, in order."""

    def counters(self) -> Mapping[str, int]:
        """Return the network counters of the kernel on which the proxy runs."""

    @property
    def capture_point(self) -> CapturePoint:
        """Interface at which the proxy's side of the phone's traffic can be captured."""
