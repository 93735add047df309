"""The ``Service`` protocol and what a service is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mplab.base.installed import THIS_MACHINE, Installed
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
    installed: Installed = THIS_MACHINE


class Service(Protocol):
    """A service of the origin. One object serves many labs, so it keeps nothing but what `ServiceContext` leads to."""

    name: str
    """Its folder in ``proxy-docker/``."""
    title: str
    network: str
    """Where all its addresses are: a /24 in 10.65.100.0/22 that no other service has."""
    rtt_ms: float
    """Round-trip time between proxy and service."""
    hosts: Mapping[str, str]
    """Host name → address in `network`."""
    ports: tuple[int, ...]
    """TCP ports that phones reach, beside 80 and 443."""
    programs: tuple[Program, ...]
    """What must be installed for it, beside nginx."""

    def prepare(self, context: ServiceContext) -> None:
        """Write configurations, certificates and content that is not there yet. Nothing runs yet."""

    def nginx(self, context: ServiceContext) -> str:
        """``server`` blocks for the origin's nginx, after `prepare`; "" for none."""

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Name → command that runs in the foreground, for each program of its own."""

    def check(self, context: ServiceContext) -> None:
        """Make sure that it answers as it should, in well under a second. Called until it does at the start, and
        before each cell that uses it.

        Raises:
            DeviceError: it does not.
        """

    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """What scenarios have to know: URLs, accounts. Stays in memory."""
