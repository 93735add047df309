"""`ProxyDriver`: a kind of proxy: its part of a lab file, what it needs, and how it is opened and checked.

A kind is a package with a module `driver` that has an object ``DRIVER``. That module is imported whenever a lab file is
read: what is slow to import, it imports when it is used.
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
from mplab.userfiles.proxyfile import ProxyFile, ProxyKind

if TYPE_CHECKING:
    from mplab.drivers.proxy.byhand import ByHand
    from mplab.drivers.proxy.servers import Servers
    from mplab.drivers.services import Service

Settings = TypeVar("Settings", bound=ProxyFile | None)


Say = Callable[[str], None]


@dataclass(frozen=True)
class ServerSettings:
    """What a lab gives to its servers.

    Attributes:
        services: of the origin, next to web sites and files.
        directory: private folder of the lab.
        logs: host folder for the logs of its programs.
        congestion_control: pinned on every socket of the proxy towards the phone.
        endpoints: where the proxy listens.
        interface: of the proxy's node towards the phone; "": the lab has no nodes, and phones reach the proxy by the
            addresses that the lab file says.
    """

    services: "Sequence[Service]"
    directory: Path
    logs: Path
    congestion_control: str
    endpoints: Endpoints
    interface: str = ""


@dataclass(frozen=True)
class HostSettings:
    """What is known of a run before its lab is up.

    Attributes:
        congestion_control: of the experiment.
        services: names of the origin's services that its scenarios use.
        wired: the lab is in namespaces of this machine, and lays wires into the proxy's; else phones reach the proxy by
            real networks.
    """

    congestion_control: str
    services: Sequence[str]
    wired: bool


class HandedOver(Protocol):
    """What was brought up outside of a lab, as the lab gets it."""

    def changed_since(self, prepared: Mapping[str, object]) -> str:
        """Return what is not as `ProxyDriver.prepare` returned it, as a phrase: ``the images net``; "": nothing."""

    def inherited(self) -> Inherited:
        """Return `environment` and `descriptors` of the process inside, where `ProxyDriver.open` finds them."""


class ProxyDriver(ProxyKind, ABC, Generic[Settings]):
    """One kind of proxy. The defaults are those of one that needs nothing outside of its lab."""

    preparing: ClassVar[str] = ""
    """What `prepare` makes, for people who wait for it; "": it makes nothing."""
    parts: ClassVar[Sequence[str]] = ()
    """What `by_hand` can be told to start; (): `mplab proxy` cannot control it."""

    @abstractmethod
    def open(self, settings: Settings, lab: ServerSettings) -> "Servers":
        """Return proxy, origin and services of a lab, not yet started. Raises LabNotReadyError."""

    def resources(self, settings: Settings) -> Iterator[str]:
        """Yield the names that a run with it locks."""
        yield from ()

    def uses(self, settings: Settings) -> str:
        """Return what it uses beyond the namespaces of a virtual lab, as one phrase; "": nothing."""
        return ""

    def check(self, settings: Settings, lab_file: str) -> Iterator[Finding]:
        """Check it for `mplab doctor`; change nothing, raise nothing.

        Args:
            settings: what the lab file says.
            lab_file: name of the lab file, for remedies.
        """
        yield from ()

    def by_hand(self, settings: Settings | None, chosen: Chosen, *, say: Say, detail: Say | None = None) -> "ByHand":
        """Return the proxy as `mplab proxy` controls it. Only of kinds with `parts`.

        Args:
            settings: what the lab file says; None: there is no lab file.
            chosen: goes before the settings.
            say: is given lines for people who wait.
            detail: is given what the programs print that are run.
        """
        raise NotImplementedError

    def prepare(self, settings: Settings, host: HostSettings) -> dict[str, object]:
        """Prepare what a run needs outside of its lab; return what it is made of, for ``lab`` in the manifest.

        Raises:
            LabNotReadyError: it cannot be had, or a run uses it.
        """
        return {}

    def host(self, settings: Settings, host: HostSettings, run_id: str) -> AbstractContextManager[HandedOver | None]:
        """Have it up for as long as the context, and as it was before afterwards.

        Raises:
            LabNotReadyError: it does not come up, or a run uses it.
        """
        return nullcontext()


DRIVERS = Drivers(PROXIES, ProxyDriver)  # type: ignore[type-abstract]
"""Name → kind of proxy, of all that are installed. Looking one up raises LabNotReadyError if it cannot be imported."""


def driver_of(settings: ProxyFile | None) -> ProxyDriver[Any]:
    """Return the kind of a lab file's proxy; None: the lab file names none."""
    return own_driver() if settings is None else DRIVERS.load(settings.driver)


def by_hand_drivers() -> dict[str, ProxyDriver[Any]]:
    """Return the kinds that `mplab proxy` can control, by name."""
    return {name: driver for name, driver in DRIVERS.importable().items() if driver.parts}


def own_driver() -> ProxyDriver[Any]:
    """Return the kind of a virtual lab whose lab file names no proxy: the one that lab files cannot name.

    Raises:
        LabNotReadyError: none is registered, or it cannot be imported.
    """
    for driver in DRIVERS.importable().values():
        if driver.settings is None:
            return driver
    raise LabNotReadyError(f"no proxy of the virtual lab is registered in {PROXIES.group}. Install mplab again")
