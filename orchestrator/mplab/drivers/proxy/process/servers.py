"""Proxy, origin and services of a lab as processes in its nodes."""

import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from mplab.base.configs import write_private
from mplab.base.errors import check_each
from mplab.base.nodes import Node
from mplab.drivers.origin.origin import Origin
from mplab.drivers.proxy.driver import ServerSettings
from mplab.drivers.proxy.process.proxy import ProcessProxy
from mplab.drivers.services import RunningServices

_SECRET_BYTES = 32


class ProcessServers:
    """`Servers` as programs in the nodes `proxy` and `origin`.

    Args:
        lab: settings from the lab.
    """

    networks: Mapping[str, int] = {}

    def __init__(self, lab: ServerSettings) -> None:
        self._lab = lab
        self._stack = ExitStack()
        self.secret_file = lab.directory / "secret"

    def start(self, nodes: Mapping[str, Node]) -> None:
        """See `Servers`: starts origin and services, and makes the proxy."""
        lab = self._lab
        self._origin_node = nodes["origin"]
        write_private(self.secret_file, secrets.token_hex(_SECRET_BYTES))
        self.services = RunningServices(lab.services, directory=lab.directory / "services", host=nodes["origin"])
        self.origin = Origin(lab.directory / "origin", additions=self.services)
        self.proxy = ProcessProxy(
            nodes["proxy"],
            directory=lab.directory,
            logs=lab.logs,
            secret_file=self.secret_file,
            congestion_control=lab.congestion_control,
            interface=lab.interface,
            endpoints=lab.endpoints,
            ports=self.services.ports,
        )
        self.origin.prepare()
        self._stack.callback(self.origin.stop)
        self.origin.start(nodes["origin"], logs=lab.logs)
        self._stack.callback(self.services.stop)
        self.services.start(lab.logs)
        self._stack.callback(self.proxy.stop)

    def start_proxy(self) -> None:
        """Start the proxy in its node."""
        self.proxy.start()

    def stop(self) -> None:
        """Stop all in reverse order."""
        self._stack.close()

    def delay_by_prefix(self) -> dict[str, float]:
        """Map address prefix of sites and services → one-way delay, ms."""
        return {**self.origin.delay_by_prefix(), **self.services.delay_by_prefix()}

    def logs(self) -> list[Path]:
        """Return the log files of nginx."""
        return self.origin.logs

    @property
    def ca_pem(self) -> Path:
        """Certificate of the lab's authority, which `Origin.prepare` has made."""
        return self.origin.ca_pem

    def make_home(self, directory: Path) -> Path:
        """Make a home folder in which browsers trust this lab's authority."""
        return self.origin.make_home(directory)

    def origin_congestion_control(self) -> str:
        """See `Servers`: read in the origin's node."""
        return self._origin_node.run(["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]).stdout.strip()

    def describe(self) -> Mapping[str, object]:
        """Return no additional facts: the manifest already has them."""
        return {}

    def check_alive(self) -> None:
        """Raise DeviceError when the proxy, a server of the origin, or a service has ended."""
        check_each([self.proxy.check_alive, self.origin.check_alive, self.services.check_alive])

    def revive(self) -> list[str]:
        """See `Servers`: starts DNS and web first, because the services and the proxy need them."""
        return [*self.origin.revive(), *self.services.revive(), *self.proxy.revive()]
