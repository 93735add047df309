"""`Service`, the base class of services behind the proxy, `ServiceContext`, and functions that find services."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mplab.base.drivers import Drivers
from mplab.base.installed import LOCAL, Installed
from mplab.base.machine import CommandResult
from mplab.base.plugins import SERVICES
from mplab.base.programs import CURL, Program
from mplab.drivers.origin import OriginHost
from mplab.drivers.origin.certificates import Authority


class ServiceHost(OriginHost, Protocol):
    """Machine where services run: a node of the lab that has the addresses of all services."""

    def run(
        self, argv: Sequence[str], *, timeout_s: float = 30.0, check: bool = True, stdin: str = ""
    ) -> CommandResult:
        """Run a command, wait for it, and return its result.

        Raises:
            DeviceError: the command takes longer than `timeout_s` or, with `check`, fails.
        """


@dataclass(frozen=True)
class ServiceContext:
    """Folders, certificate authority and host of a service in one lab.

    Attributes:
        directory: private folder of this service in this lab; removed with the lab.
        cache: folder of this service for content that is kept between labs.
        authority: issues certificates that the phone's browser trusts.
        host: machine where the programs of the service run.
        installed: translates paths and programs of this computer into those of `host`.
    """

    directory: Path
    cache: Path
    authority: Authority
    host: ServiceHost
    installed: Installed = LOCAL


class Service(ABC):
    """Base class of services behind the proxy. One object serves many labs, so all state is in `ServiceContext`.

    A subclass sets `name`, `title`, `network` and `hosts`, and implements `check` and `facts`. Everything else has a
    default.
    """

    name: str
    """Name of the service, and of its folder in ``proxy-docker/mplab/services``."""
    title: str
    network: str
    """Network of all addresses of the service: a /24 in 10.65.100.0/22 that no other service uses."""
    rtt_ms: float = 4.0
    """Round-trip time between proxy and service; nikravesh2016 §5.5."""
    hosts: Mapping[str, str]
    """Host name → address in `network`."""
    ports: tuple[int, ...] = ()
    """TCP ports that phones reach, in addition to 80 and 443."""
    programs: tuple[Program, ...] = ()
    """Programs that must be installed for the service, in addition to nginx."""

    def prepare(self, context: ServiceContext) -> None:  # noqa: B027 - optional
        """Write the service's missing configurations, certificates and content. Its programs do not run yet.

        Raises:
            LabNotReadyError: a file that the service needs is not installed.
        """

    def nginx(self, context: ServiceContext) -> str:
        """Return the service's ``server`` blocks for the origin's nginx; "" for none. Called after `prepare`."""
        return ""

    def commands(self, context: ServiceContext) -> Mapping[str, Sequence[str]]:
        """Return the command of each program of the service, by name; each command runs in the foreground."""
        return {}

    @abstractmethod
    def check(self, context: ServiceContext) -> None:
        """Check in well under a second that the service answers correctly.

        Called repeatedly at the start until it succeeds, and before each cell that uses the service.

        Raises:
            DeviceError: the service does not answer correctly.
        """

    @abstractmethod
    def facts(self, context: ServiceContext) -> Mapping[str, str]:
        """Return data for scenarios by name, such as URLs and accounts. mplab keeps them only in memory."""


DRIVERS = Drivers(SERVICES, Service, "SERVICE")  # type: ignore[type-abstract]
"""Name → service, for all installed services."""


def load_service(name: str) -> Service:
    """Return the service `name`: the object ``SERVICE`` in its ``service.py``.

    Raises:
        InputError: no service has this name.
        LabNotReadyError: its ``service.py`` cannot be imported, or its SERVICE is missing or has a wrong class or name.
    """
    return DRIVERS.load(name)


def service_names() -> list[str]:
    """Return the names of all services, sorted."""
    return list(DRIVERS)


_PORTS = (80, 443)
_MARGIN_S = 2.0
"""Extra time for curl to end by itself after its own time limit, s."""


def fetch(
    service: Service, context: ServiceContext, url: str, *arguments: str, timeout_s: float = 3.0
) -> CommandResult:
    """Request `url` by curl on the machine of the service; return curl's exit code and output.

    The service's host names are resolved without a name server.

    Args:
        service: service whose host names are resolved.
        context: context of the running service.
        url: URL to request.
        arguments: additional arguments of curl, e.g. ``--fail``.
        timeout_s: limit for the request, s.
    """
    resolve = [
        part for host, at in service.hosts.items() for port in _PORTS for part in ("--resolve", f"{host}:{port}:{at}")
    ]
    argv = [
        *(str(CURL.path()), "-q", "--silent", "--show-error", "--noproxy", "*"),
        *("--max-time", f"{timeout_s:g}", "--cacert", str(context.authority.ca_pem), *resolve, *arguments, url),
    ]
    return context.host.run(argv, timeout_s=timeout_s + _MARGIN_S, check=False)
