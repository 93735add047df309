"""Proxy, origin and services of a lab: as processes in its nodes, or as containers."""

import secrets
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

from mplab.base.configs import write_private
from mplab.base.endpoints import Endpoints
from mplab.base.errors import check_each
from mplab.base.nodes import Node
from mplab.drivers.origin.origin import Origin
from mplab.drivers.proxy import Proxy
from mplab.drivers.proxy.process.proxy import ProcessProxy
from mplab.drivers.services import RunningServices, Service
from mplab.lab import topology

_SECRET_BYTES = 32


class Servers(Protocol):
    """What the phone talks to, at the addresses of `mplab.lab.topology`."""

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
        """What the origin has beside web sites and files (after `start`)."""

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Start everything but the proxy, and wait until it answers.

        Raises:
            DeviceError: a part does not come up.
        """

    def start_proxy(self) -> None:
        """Start the proxy, when nothing in front of it is missing any more."""

    def stop(self) -> None:
        """End all."""

    def delay_by_prefix(self) -> dict[str, float]:
        """One-way delay between proxy and servers, ms, for the link emulator."""

    def logs(self) -> list[Path]:
        """Of the origin's web server."""

    @property
    def ca_pem(self) -> Path:
        """Certificate of the lab's authority (after `start`)."""

    def make_home(self, directory: Path) -> Path:
        """Make a home folder whose browser trusts the lab's authority."""

    def describe(self) -> Mapping[str, Any]:
        """What is known of them only when they are up."""

    def check_alive(self) -> None:
        """Raise DeviceError when some of them have ended; the message names all of them."""

    def revive(self) -> list[str]:
        """Start those again that have ended by themselves; one sentence for each. Raises DeviceError."""


class ProcessServers:
    """`Servers` as programs in the nodes `proxy` and `origin`.

    Args:
        services: what the origin has beside web sites and files.
        directory: private folder of the lab.
        logs: host folder for the logs of its programs.
        congestion_control: pinned on every socket of the proxy towards the phone.
        endpoints: where the proxy listens.
    """

    networks: Mapping[str, int] = {}

    def __init__(
        self,
        *,
        services: Sequence[Service],
        directory: Path,
        logs: Path,
        congestion_control: str,
        endpoints: Endpoints,
    ) -> None:
        self._endpoints = endpoints
        self._wanted = tuple(services)
        self._directory = directory
        self._logs = logs
        self._congestion_control = congestion_control
        self._stack = ExitStack()
        self.secret_file = directory / "secret"

    def start(self, nodes: Mapping[str, Node]) -> None:
        """Origin and services."""
        write_private(self.secret_file, secrets.token_hex(_SECRET_BYTES))
        self.services = RunningServices(self._wanted, directory=self._directory / "services", host=nodes["origin"])
        self.origin = Origin(self._directory / "origin", additions=self.services)
        self.proxy = ProcessProxy(
            nodes["proxy"],
            directory=self._directory,
            logs=self._logs,
            secret_file=self.secret_file,
            congestion_control=self._congestion_control,
            interface=topology.PROXY_LAN,
            endpoints=self._endpoints,
            ports=self.services.ports,
        )
        self.origin.prepare()
        self._stack.callback(self.origin.stop)
        self.origin.start(nodes["origin"], logs=self._logs)
        self._stack.callback(self.services.stop)
        self.services.start(self._logs)
        self._stack.callback(self.proxy.stop)

    def start_proxy(self) -> None:
        """In its node."""
        self.proxy.start()

    def stop(self) -> None:
        """In reverse order."""
        self._stack.close()

    def delay_by_prefix(self) -> dict[str, float]:
        """Of sites and services."""
        return {**self.origin.delay_by_prefix(), **self.services.delay_by_prefix()}

    def logs(self) -> list[Path]:
        """Where nginx writes them."""
        return self.origin.logs

    @property
    def ca_pem(self) -> Path:
        """Of the authority that this origin has made."""
        return self.origin.ca_pem

    def make_home(self, directory: Path) -> Path:
        """By this lab's own authority."""
        return self.origin.make_home(directory)

    def describe(self) -> Mapping[str, Any]:
        """Nothing that the manifest has not."""
        return {}

    def check_alive(self) -> None:
        """The proxy, the origin's servers, and the services."""
        check_each([self.proxy.check_alive, self.origin.check_alive, self.services.check_alive])

    def revive(self) -> list[str]:
        """Names and web before the services and the proxy, which need them."""
        return [*self.origin.revive(), *self.services.revive(), *self.proxy.revive()]
