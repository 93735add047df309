"""`Service`, the base class of services, and what a service is given."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mplab.base.installed import LOCAL, Installed
from mplab.base.machine import CommandResult
from mplab.base.programs import Program
from mplab.drivers.origin.certificates import Authority
from mplab.drivers.origin.host import Host as OriginHost


class Host(OriginHost, Protocol):
    """Where services run: a node of the lab in which the addresses of all services are local."""

    def run(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command and wait. Raises DeviceError."""


@dataclass(frozen=True)
class ServiceContext:
    """What a service may use.

    Attributes:
        directory: private folder of this service in this lab; it goes with the lab.
        cache: folder of this service for content that is kept between labs.
        authority: issues certificates that the phone's browser trusts.
        host: where its programs run.
        installed: how they see files and each other: what a configuration or a command names goes through it.
    """

    directory: Path
    cache: Path
    authority: Authority
    host: Host
    installed: Installed = LOCAL


class Service(ABC):
    """A service of the origin. One object serves many labs, so it keeps nothing but what `ServiceContext` leads to.

    A subclass sets `name`, `title`, `network` and `hosts`, and implements `check` and `facts`. Everything else has a
    default.
    """

    name: str
    """Its folder in ``proxy-docker/mplab/services``."""
    title: str
    network: str
    """Where all its addresses are: a /24 in 10.65.100.0/22 that no other service has."""
    rtt_ms: float = 4.0
    """Round-trip time between proxy and service; nikravesh2016 §5.5."""
    hosts: Mapping[str, str]
    """Host name → address in `network`."""
    ports: tuple[int, ...] = ()
    """TCP ports that phones reach, in addition to 80 and 443."""
    programs: tuple[Program, ...] = ()
    """Programs that must be installed for it, in addition to nginx."""

    def prepare(self, context: ServiceContext) -> None:  # noqa: B027 - optional
        """Write configurations, certificates and content that is not there yet. Nothing runs yet."""

    def nginx(self, context: ServiceContext) -> str:
        """Return ``server`` blocks for the origin's nginx, after `prepare`; "" for none."""
        return ""

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return name → command that runs in the foreground, for each program of its own."""
        return {}

    @abstractmethod
    def check(self, context: ServiceContext) -> None:
        """Check that the service answers as it should, in well under a second. Called until it does at the start, and
        before each cell that uses it.

        Raises:
            DeviceError: it does not.
        """

    @abstractmethod
    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return what scenarios have to know: URLs, accounts. Stays in memory."""
