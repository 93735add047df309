"""`TransportDriver`, the class of each transport package's ``DRIVER``, and the installed drivers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from mplab.base.drivers import Drivers
from mplab.base.errors import LabNotReadyError
from mplab.base.findings import Finding
from mplab.base.paths import RMNET, WLAN
from mplab.base.plugins import TRANSPORTS
from mplab.drivers.phone.kernel import KernelMptcp, PhoneFacts
from mplab.drivers.transport.protocol import Transport
from mplab.userfiles.experiments.transport import TransportInfo

_Options = TypeVar("_Options", bound=BaseModel)
_NETWORKS = {WLAN: "WiFi", RMNET: "cellular"}


@dataclass(frozen=True)
class TransportChance:
    """Result of `TransportDriver.chance`, the check whether a phone can use a transport.

    Attributes:
        possible: True if the phone can use the transport.
        how: connections that use the transport. ``redirect``: all TCP connections of the phone. ``socks``: only those
            of apps that can use a proxy. "": none, the transport is not possible.
        note: reason why the transport is not possible; otherwise a requirement that users should know, or "".
    """

    possible: bool
    how: str
    note: str = ""


class TransportDriver(TransportInfo):
    """A transport: its description for experiment files and figures, its checks, and how to open it."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return the transport for one phone. Every driver overrides this method.

        Args:
            options: an instance of `options_model`; None: its defaults.
            interfaces: interface of the phone → its address.
            files: contents of the files named by options, as the experiment has read them; see `TransportUse.files`.

        Raises:
            NotImplementedError: the driver does not override this method.
        """
        raise NotImplementedError

    def problems_in(self, files: Mapping[str, bytes]) -> list[str]:
        """Return problems in the files named by options, one line each: ``policies/x.yaml:3: …``.

        Args:
            files: see `TransportUse.files`.
        """
        return []

    def missing_reason(self) -> str:
        """Return why a virtual lab on this host cannot run this transport, or ""."""
        return ""

    def missing_on_phone(self, phone: PhoneFacts) -> str:
        """Return why a phone of a lab file cannot run this transport, or "".

        The text is the predicate of a sentence whose subject is the phone: ``has no Multipath TCP``.
        """
        return ""

    def check(self) -> Iterator[Finding]:
        """Yield findings about this host for ``mplab doctor``. Default: one warning if there is a `missing_reason`."""
        if reason := self.missing_reason():
            yield Finding(self.name, "warning", reason, f"cells with {self.title} will be skipped")

    def check_phone(self, read_kernel: Callable[[], KernelMptcp]) -> str:
        """Return why a connected, rooted phone cannot use this transport, or "". See `Transport.missing_on_phone`."""
        return ""

    def chance(self, phone: PhoneFacts) -> TransportChance:
        """Return whether this transport is possible on a phone, and why not, for ``mplab phone probe``."""
        missing = [interface for interface in self.paths if interface not in phone.interfaces]
        problem = "" if phone.agent else "mplab's agent does not run on it"
        if not problem and missing and len(self.paths) > 1:
            problem = "two interfaces are needed, and there is one"
        elif not problem and missing:
            problem = f"no {_NETWORKS.get(missing[0], missing[0])} interface"
        how = "redirect" if phone.rooted else "socks"
        problem = problem or self.problem_on(phone)
        return TransportChance(not problem, "" if problem else how, problem or self.note_on(phone))

    def problem_on(self, phone: PhoneFacts) -> str:
        """Return why a phone that has the agent and the interfaces still cannot use the transport; "" if it can."""
        return ""

    def note_on(self, phone: PhoneFacts) -> str:
        """Return a requirement of the transport on a phone, as a note for users; "" if it has no requirement.

        Default: without root, the agent needs Linux 5.7 or later to bind its sockets to interfaces.
        """
        return "" if phone.rooted else "the agent binds to the interface, which without root needs Linux 5.7 or later"


def options_as(model: type[_Options], options: BaseModel | None) -> _Options:
    """Return `options` as an instance of `model`; None gives an instance with the defaults."""
    return options if isinstance(options, model) else model.model_validate(options.model_dump() if options else {})


DRIVERS = Drivers(TRANSPORTS, TransportDriver)
"""Name → driver, for every installed transport, sorted by name.

A lookup raises LabNotReadyError when the driver cannot be imported."""


def names() -> tuple[str, ...]:
    """Return the names of all transports and of their variants: ``mptcp``, ``mpflex``, ``mpflex:minrtt``."""
    return tuple(
        name
        for driver in DRIVERS.importable().values()
        for name in (driver.name, *(f"{driver.name}:{variant}" for variant in driver.variants))
    )


def default_over(*paths: str) -> str:
    """Return the name of the transport that mplab's commands use by default over exactly the interfaces `paths`.

    Raises:
        LabNotReadyError: no such transport is registered, or it cannot be imported.
    """
    for name, driver in DRIVERS.importable().items():
        if driver.default and driver.paths == paths:
            return name
    raise LabNotReadyError(f"no default transport over {' and '.join(paths)}. Name one: --transport NAME")


def make_transport(
    name: str, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
) -> Transport:
    """Return the transport `name` for one phone; see `TransportDriver.open`."""
    return DRIVERS[name].open(options, interfaces, files)


def transport_named(text: str, interfaces: Mapping[str, str]) -> Transport:
    """Return the transport for a name such as ``mpflex:minrtt`` (see `names`); other options have their defaults."""
    name, _, variant = text.partition(":")
    driver = DRIVERS[name]
    options = {driver.variant_option: variant} if variant else {}
    return driver.open(driver.options_model.model_validate(options) if driver.options_model else None, interfaces)


def chances(phone: PhoneFacts) -> dict[str, TransportChance]:
    """Check for each installed transport whether the phone can use it; return transport name → result."""
    return {name: driver.chance(phone) for name, driver in DRIVERS.importable().items()}
