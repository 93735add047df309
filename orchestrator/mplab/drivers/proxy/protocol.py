"""The protocols of a lab's servers: `Proxy`, and `Servers`, which `ProxyDriver.open` returns."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from mplab.base.nodes import Node
from mplab.drivers.capture import CapturePoint
from mplab.drivers.services import RunningServices
from mplab.format.agentlog import LogRecord, SessionSettings


class Proxy(Protocol):
    """Server that accepts the agent's connections and opens plain TCP connections to the origin."""

    def start(self) -> None:
        """Start the proxy and wait until it listens."""

    def stop(self) -> None:
        """Stop the proxy. Before it ends, it logs the connections that are still open."""

    def use(self, session: SessionSettings, congestion_control: str) -> None:
        """Apply settings to connections and sessions that start after this call; existing ones may end.

        Args:
            session: settings of agent sessions; {}: keep the present ones.
            congestion_control: algorithm for every socket towards the phone.
        """

    def log_end(self) -> int:
        """Return a mark for the current end of the connection log, to be passed to `logs_since`."""

    def logs_since(self, mark: int) -> list[LogRecord]:
        """Return the records written to the connection log after `mark`, in order."""

    def counters(self) -> Mapping[str, int]:
        """Return the network counters of the kernel on which the proxy runs."""

    @property
    def capture_point(self) -> CapturePoint:
        """Capture point at the proxy's interface towards the phone."""


class Servers(Protocol):
    """The proxy, origin and services of a lab."""

    @property
    def networks(self) -> Mapping[str, int]:
        """Node → file descriptor of the network namespace that the node must use; other nodes get a new namespace."""

    @property
    def secret_file(self) -> Path:
        """File with the secret that agent and proxy share."""

    @property
    def proxy(self) -> Proxy:
        """The proxy, to which the phone's agent connects (after `start`)."""

    @property
    def services(self) -> RunningServices:
        """Services of the origin, e.g. Icecast (after `start`); its web and file servers are not included."""

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Start all servers except the proxy, and wait until each answers.

        Args:
            nodes: nodes of the lab by name; {}: the lab has no nodes.

        Raises:
            DeviceError: a server does not start.
        """

    def start_proxy(self) -> None:
        """Start the proxy. Call it after `start`, when all servers behind the proxy run."""

    def stop(self) -> None:
        """Stop the proxy and all servers."""

    def delay_by_prefix(self) -> dict[str, float]:
        """Return address prefix of servers → one-way delay between the proxy and them, ms, for the link emulator."""

    def logs(self) -> list[Path]:
        """Return the logs of the origin's web server."""

    @property
    def ca_pem(self) -> Path:
        """Certificate of the lab's certificate authority (after `start`)."""

    def make_home(self, directory: Path) -> Path:
        """Make a home folder in which browsers trust the lab's certificate authority; return its path."""

    def origin_congestion_control(self) -> str:
        """Return the congestion control of the origin's own sockets. Raises DeviceError when it cannot be read."""

    def describe(self) -> Mapping[str, object]:
        """Return facts for the manifest that are known only after `start`."""

    def check_alive(self) -> None:
        """Raise DeviceError when a server has ended; the message names all such servers."""

    def revive(self) -> list[str]:
        """Start servers again that have ended unexpectedly; return one sentence for each.

        Raises:
            DeviceError: a server does not start.
        """
