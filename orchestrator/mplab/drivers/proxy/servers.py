"""`Servers`: proxy, origin and services of a lab, as a proxy's driver opens them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from mplab.base.nodes import Node
from mplab.drivers.proxy.protocol import Proxy
from mplab.drivers.services import RunningServices


class Servers(Protocol):
    """What the phone talks to, at the lab's own addresses."""

    @property
    def networks(self) -> Mapping[str, int]:
        """Node → descriptor of the network namespace that it has to be in; others get one of their own."""

    @property
    def secret_file(self) -> Path:
        """What the agent shares with the proxy."""

    @property
    def proxy(self) -> Proxy:
        """What the agent connects to (after `start`)."""

    @property
    def services(self) -> RunningServices:
        """What the origin has next to web sites and files (after `start`)."""

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Start everything but the proxy, and wait until it answers.

        Args:
            nodes: of the lab; {} when it has none.

        Raises:
            DeviceError: a part does not come up.
        """

    def start_proxy(self) -> None:
        """Start the proxy, once everything in front of it is there."""

    def stop(self) -> None:
        """End all."""

    def delay_by_prefix(self) -> dict[str, float]:
        """Return the one-way delay between proxy and servers, ms, for the link emulator."""

    def logs(self) -> list[Path]:
        """Return the logs of the origin's web server."""

    @property
    def ca_pem(self) -> Path:
        """Certificate of the lab's authority (after `start`)."""

    def make_home(self, directory: Path) -> Path:
        """Make a home folder whose browser trusts the lab's authority."""

    def origin_congestion_control(self) -> str:
        """Return what the origin's own sockets use. Raises DeviceError."""

    def describe(self) -> Mapping[str, object]:
        """Return what is known of them only when they are up."""

    def check_alive(self) -> None:
        """Raise DeviceError when some of them have ended; the message names all of them."""

    def revive(self) -> list[str]:
        """Start those again that have ended by themselves; one sentence for each. Raises DeviceError."""
