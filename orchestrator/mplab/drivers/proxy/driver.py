"""Define `ProxyDriver`: one kind of proxy, with its part of a lab file, its checks, and how to open it.

A kind is a package with a module `driver` that has an object ``DRIVER``. Reading a lab file imports that module, so the
module imports slow modules only when it uses them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from mplab.base.drivers import Drivers
from mplab.base.endpoints import Endpoints
from mplab.base.enter import Inherited
from mplab.base.errors import LabNotReadyError
from mplab.base.findings import Finding
from mplab.base.plugins import PROXIES
from mplab.drivers.proxy.byhand import Chosen
from mplab.userfiles.labs.proxyfile import ProxyFile, ProxyKind

if TYPE_CHECKING:
    from mplab.drivers.proxy.byhand import ByHand
    from mplab.drivers.proxy.protocol import Servers
    from mplab.drivers.services import Service

Settings = TypeVar("Settings", bound=ProxyFile | None)


Say = Callable[[str], None]


@dataclass(frozen=True)
class ServerSettings:
    """Settings that a lab passes to its servers.

    Attributes:
        services: services of the origin, e.g. Icecast; its web and file servers are not included.
        directory: private folder of the lab.
        logs: host folder for the logs of its programs.
        congestion_control: algorithm for every socket of the proxy towards the phone.
        endpoints: addresses at which the proxy listens.
        interface: interface of the proxy's node towards the phone; "": the lab has no nodes, and phones reach the proxy
            by the addresses in the lab file.
        launcher: words that precede the command lines of the origin's servers, so that they accept Multipath TCP.
    """

    services: "Sequence[Service]"
    directory: Path
    logs: Path
    congestion_control: str
    endpoints: Endpoints
    interface: str = ""
    launcher: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostSettings:
    """Properties of a run that are known before its lab starts.

    Attributes:
        congestion_control: algorithm that the experiment requests.
        services: names of the origin's services that the experiment's scenarios use.
        wired: True if the lab runs in namespaces of this machine, and veth pairs connect it to the proxy's namespaces.
            False: phones reach the proxy by real networks.
    """

    congestion_control: str
    services: Sequence[str]
    wired: bool


class HostedResources(Protocol):
    """Resources outside of a lab, such as containers, that `ProxyDriver.host` has started and passes into the lab."""

    def changed_since(self, prepared: Mapping[str, object]) -> str:
        """Return the resources that differ from the result of `ProxyDriver.prepare`, as a phrase; "": none."""

    def inherited(self) -> Inherited:
        """Return environment and file descriptors to pass to the lab's process; there, `ProxyDriver.open` uses them."""


class ProxyDriver(ProxyKind, ABC, Generic[Settings]):
    """One kind of proxy. The default methods suit a proxy that uses nothing outside of its lab."""

    preparing: ClassVar[str] = ""
    """Description of the result of `prepare`, shown to waiting users; "": `prepare` makes nothing."""
    parts: ClassVar[Sequence[str]] = ()
    """Parts that `by_hand` can start; (): `mplab proxy` cannot control this kind."""

    @abstractmethod
    def open(self, settings: Settings, lab: ServerSettings) -> "Servers":
        """Return proxy, origin and services of a lab, not yet started.

        Raises:
            LabNotReadyError: proxy, origin or services cannot be used.
        """

    def resources(self, settings: Settings) -> Iterator[str]:
        """Yield the names of the host-wide locks that a run with these settings takes."""
        yield from ()

    def uses(self, settings: Settings) -> str:
        """Return a phrase that names the resources that the proxy uses outside of a virtual lab; "": none."""
        return ""

    def check(self, settings: Settings, lab_file: str) -> Iterator[Finding]:
        """Yield findings for `mplab doctor`; change nothing, raise nothing.

        Args:
            settings: entry of the proxy in the lab file.
            lab_file: name of the lab file, for remedies.
        """
        yield from ()

    def by_hand(self, settings: Settings | None, chosen: Chosen, *, say: Say, detail: Say | None = None) -> "ByHand":
        """Return the object by which `mplab proxy` controls a proxy. Every kind with `parts` overrides this method.

        Args:
            settings: entry of the proxy in the lab file; None: there is no lab file.
            chosen: command line options that override `settings`.
            say: receives lines for waiting users.
            detail: receives the output of programs.

        Raises:
            NotImplementedError: the kind has no `parts`.
        """
        raise NotImplementedError

    def prepare(self, settings: Settings, host: HostSettings) -> dict[str, object]:
        """Prepare the proxy's resources outside of the lab; return their description for ``lab`` in the manifest.

        Raises:
            LabNotReadyError: the resources cannot be provided, or another run uses them.
        """
        return {}

    def host(
        self, settings: Settings, host: HostSettings, run_id: str
    ) -> AbstractContextManager[HostedResources | None]:
        """Return a context that starts the proxy's resources outside of the lab, and yields them for the lab.

        At its end, the context restores the previous state of the resources. The default yields None: there are no
        resources.

        Raises:
            LabNotReadyError: the resources do not start, or another run uses them.
        """
        return nullcontext()


DRIVERS = Drivers(PROXIES, ProxyDriver)  # type: ignore[type-abstract]
"""Name → kind of proxy, for all installed kinds. A lookup raises LabNotReadyError if the import fails."""


def driver_of(settings: ProxyFile | None) -> ProxyDriver[Any]:
    """Return the driver for `settings`, the proxy of a lab file; for None (no proxy), the result of `own_driver`."""
    return own_driver() if settings is None else DRIVERS.load(settings.driver)


def by_hand_drivers() -> dict[str, ProxyDriver[Any]]:
    """Return name → driver for the kinds of proxy that `mplab proxy` can control."""
    return {name: driver for name, driver in DRIVERS.importable().items() if driver.parts}


def own_driver() -> ProxyDriver[Any]:
    """Return the driver that is used when a lab file has no section ``proxy``: the kind that needs no settings.

    Raises:
        LabNotReadyError: no such kind is registered, or its module cannot be imported.
    """
    for driver in DRIVERS.importable().values():
        if driver.settings is None:
            return driver
    raise LabNotReadyError(f"no proxy of the virtual lab is registered in {PROXIES.group}. Install mplab again")
