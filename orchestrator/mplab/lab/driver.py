"""Define a kind of phone: the programs that it needs, its checks, and the lab around it.

A kind is a package with a module `driver` that has an object `DRIVER`, registered in the group ``mplab.phones``. The
key `driver` of a phone in a lab file names its kind. The module is imported whenever a lab file names the
kind, and imports slow modules only when it uses them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mplab.base.drivers import Drivers
from mplab.base.findings import Finding
from mplab.base.plugins import PHONES
from mplab.base.programs import Program
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.services import Service
from mplab.drivers.shaper.driver import inside_driver_of
from mplab.drivers.transport import DRIVERS as TRANSPORTS
from mplab.userfiles.labs.lab import LabFile, PhoneFile
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse
from mplab.userfiles.labs.phone import PhoneKind

if TYPE_CHECKING:
    from mplab.lab.protocol import Lab


Identity = Mapping[str, str | Sequence[str]]
"""Identity that a phone reports: ``identity`` in manifest.json."""


@dataclass(frozen=True)
class LabSettings:
    """The settings of a lab.

    Attributes:
        seed: seed of all random choices of its shapers.
        congestion_control: congestion control of every socket between agent and proxy.
        logs: host folder for the logs of the lab's programs.
        services: services of the origin, e.g. Icecast; its web and file servers are not included.
        use: the lab file, and the phone in it that the run uses.
        run_id: id of the run, for messages to other users of a resource.
        direct_multipath: applications and origin need Multipath TCP sockets; see `Experiment.direct_multipath`.
    """

    seed: int
    congestion_control: str
    logs: Path
    services: Sequence[Service] = ()
    use: LabUse = VIRTUAL
    run_id: str = ""
    direct_multipath: bool = False


class PhoneDriver(PhoneKind, ABC):
    """One kind of phone; see `PhoneKind` for its attributes and its checks of lab files.

    The default attributes and methods are those of a phone that is a node of the virtual lab.
    """

    @abstractmethod
    def open_lab(self, settings: LabSettings) -> "Lab":
        """Return a lab, not yet started, around a phone of this kind."""

    @abstractmethod
    def check(self, lab: LabFile, name: str, lab_file: str) -> Iterator[Finding]:
        """Check one phone for `mplab doctor`. Change nothing, raise nothing.

        Args:
            lab: the lab file.
            name: name of the phone in it.
            lab_file: path of the lab file, for remedies.
        """

    def programs(self, settings: PhoneFile | None) -> Sequence[Program]:
        """Return the programs of this machine that such a phone needs; those that every lab needs are not added."""
        return ()

    def facts(self, settings: PhoneFile | None) -> PhoneFacts:
        """Return the facts about a phone that are known before it is up; they decide which transports it can run."""
        return PhoneFacts()

    def called(self, name: str, settings: PhoneFile | None) -> str:
        """Return the name by which messages call the phone: ``phone 'one'``."""
        return f"phone '{name}'"

    def identify(self, use: LabUse) -> Identity:
        """Check that a run can use the phone, before any part of the run starts.

        Returns:
            The phone's identity; {} for a phone that exists only while its lab is up.

        Raises:
            LabNotReadyError: the phone is missing, in use, or not rooted as required.
        """
        return {}


DRIVERS = Drivers(PHONES, PhoneDriver)  # type: ignore[type-abstract]
"""Name → kind of phone, for all installed kinds."""


def phone_driver(name: str) -> PhoneDriver:
    """Return the kind of phone that a lab file names as `driver`.

    Raises:
        InputError: there is no such kind.
        LabNotReadyError: its module cannot be imported, or has no `PhoneDriver` of this name.
    """
    return DRIVERS.load(name)


def programs_of_lab(use: LabUse) -> list[Program]:
    """Return the programs that the phone and the virtual routers of a lab need.

    Raises:
        LabNotReadyError: the programs of a virtual router are installed, but another of its parts is missing.
    """
    programs = list(phone_driver(use.kind).programs(use.settings))
    for machine in use.inside().values():
        driver = inside_driver_of(machine)
        if all(program.find() is not None for program in driver.programs):
            driver.describe()
        programs += driver.programs
    return programs


def missing_on_phone(use: LabUse, transport: str) -> str:
    """Return why the phone of a lab cannot run a transport: a sentence that names the missing feature.

    "": no feature is missing on the phone. Programs on this machine are not checked.
    """
    driver = phone_driver(use.kind)
    facts = driver.facts(use.settings)
    missing = TRANSPORTS[transport].missing_on_phone(facts)
    called = driver.called(use.phone, use.settings) if facts.rooted else f"phone '{use.phone}'"
    return f"{called} {missing}" if missing else ""
