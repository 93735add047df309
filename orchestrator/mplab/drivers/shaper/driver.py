"""What a kind of shaper is: its settings, its abilities, and how it is opened, checked and given back.

A kind is a package with a module `driver` that has an object `DRIVER`, registered in the group ``mplab.shapers``. It is
one of four:

* `MachineDriver`: a machine that is reached from here and has an entry in the lab file (a router, a server, a phone).
* `InsideDriver`: a machine that a virtual lab boots for itself, in its own namespaces.
* `PhoneDriver`: a phone that shapes its own paths, by what a run drives it with.
* `EmulatorDriver`: the link emulator of the virtual lab.

A module `driver` is imported whenever a lab file is read: what is slow to import, it imports when it is used.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from mplab.base.drivers import Drivers
from mplab.base.findings import Finding
from mplab.base.plugins import SHAPERS
from mplab.base.programs import Program
from mplab.userfiles.machines import Section, ShaperKind, ShapingMachine, emulator

if TYPE_CHECKING:
    from mplab.base.nodes import Node
    from mplab.drivers.phone import Phone
    from mplab.drivers.shaper.owner import Owner
    from mplab.drivers.shaper.protocol import Emulator, HeldMachine

Settings = TypeVar("Settings", bound=BaseModel)
DrivenPhone = TypeVar("DrivenPhone", contravariant=True)  # noqa: PLC0105 - as `Settings`
NOTHING_NEEDED = "nothing needs to be installed: its dead-man's switch runs while it is held"


class ShaperDriver(ShaperKind, ABC):
    """One kind of shaper; see `ShaperKind` for its attributes."""

    programs: tuple[Program, ...] = ()
    """Programs of this machine that are needed, beside those of every lab."""


class EntryDriver(ShaperDriver, Generic[Settings]):
    """A kind with entries in lab files."""

    @abstractmethod
    def check(self, machine: ShapingMachine[Settings], lab_file: str) -> Iterator[Finding]:
        """Check one machine for `mplab doctor`; change nothing, raise nothing.

        Args:
            machine: its entry.
            lab_file: name of the lab file, for what to do.
        """


class MachineState(Protocol):
    """What is installed on a machine, and who holds it."""

    def to_json(self) -> dict[str, object]:
        """For ``--json``."""

    def __str__(self) -> str:
        """For people: ``held by nobody``."""


class MachineDriver(EntryDriver[Settings]):
    """A kind of machine that is reached from here."""

    @abstractmethod
    def where(self, machine: ShapingMachine[Settings]) -> str:
        """Return how it is reached, which names its lock: one machine, one name, whatever lab files call it."""

    @abstractmethod
    def hold(self, machine: ShapingMachine[Settings], owner: "Owner") -> AbstractContextManager["HeldMachine"]:
        """Hold it for as long as the context; no one else may shape it meanwhile.

        Entering raises LabNotReadyError when it cannot be reached, cannot shape, or another owner holds it.
        """

    @abstractmethod
    def uses(self, machine: ShapingMachine[Settings]) -> str:
        """Return what it uses beyond the namespaces of a virtual lab, as one phrase: who allows a lab file reads it."""

    @abstractmethod
    def restore(self, label: str, settings: Settings, token: str) -> None:
        """Give back what a dead process held, from another process; do nothing when `token` holds it no more.

        Args:
            label: of the machine, for messages.
            settings: its entry.
            token: of the hold; see `Owner.token`.

        Raises:
            MplabError: it cannot be reached, or something could not be taken back.
        """

    @abstractmethod
    def give_back(self, machine: ShapingMachine[Settings]) -> None:
        """Take back what any owner has changed on it. Raises LabNotReadyError: not everything could be."""

    @abstractmethod
    def show(self, machine: ShapingMachine[Settings]) -> MachineState:
        """Return what is installed on it, and who holds it. Raises LabNotReadyError: it cannot be reached."""

    def install(self, _machine: ShapingMachine[Settings]) -> str:
        """Install what holding it needs; return what came of it. Raises LabNotReadyError."""
        return NOTHING_NEEDED

    def remove(self, _machine: ShapingMachine[Settings]) -> str:
        """Take off it what `install` has installed; return what came of it. Raises LabNotReadyError."""
        return NOTHING_NEEDED


@dataclass(frozen=True)
class Wiring:
    """How a router of a virtual lab is wired.

    Attributes:
        ports: interface → its address with prefix length, its hardware address.
        towards: interface of the phone → the router's interface towards it.
        routes: arguments of ``ip``.
        neighbours: interface, address and hardware address of each known neighbour.
        management: address with prefix length of the lab's end, and of the router's, of a wire to drive it by.
    """

    ports: Mapping[str, tuple[str, str]]
    towards: Mapping[str, str]
    routes: Sequence[str]
    neighbours: Sequence[tuple[str, str, str]]
    management: tuple[str, str]


class BootedMachine(Protocol):
    """A machine that a lab boots."""

    @property
    def machine(self) -> ShapingMachine[BaseModel]:
        """It as a machine that can be reached, once it was started: its kind has a `MachineDriver`."""

    def start(self) -> None:
        """Wire it and let it boot."""

    def wait(self) -> dict[str, str]:
        """Wait until it answers; return what it says of itself. Raises LabNotReadyError: it does not boot."""

    def check_alive(self) -> None:
        """Raise DeviceError when it has ended."""

    def stop(self) -> None:
        """Switch it off."""


class InsideDriver(EntryDriver[Settings]):
    """A kind of machine that a virtual lab boots in the place of its node ``router``."""

    inside = True

    @abstractmethod
    def open(
        self, machine: ShapingMachine[Settings], *, node: "Node", wiring: Wiring, directory: Path, log: Path
    ) -> BootedMachine:
        """Return the machine, not yet started.

        Args:
            machine: its entry.
            node: that it takes the place of; its interfaces have no addresses.
            wiring: of that node.
            directory: private folder for its files.
            log: its console.
        """

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the versions of its parts, for ``manifest.json``. Raises LabNotReadyError: one is missing."""


class PhoneDriver(ShaperDriver, Generic[Settings, DrivenPhone]):
    """A kind of phone, named as the phone's driver, that shapes its own paths while a run drives it."""

    @abstractmethod
    def hold(
        self, phone: DrivenPhone, machine: ShapingMachine[Settings], owner: "Owner"
    ) -> AbstractContextManager["HeldMachine"]:
        """See `MachineDriver.hold`; `phone` is the one that the run drives."""

    @abstractmethod
    def check(self, phone: DrivenPhone, machine: ShapingMachine[Settings]) -> Iterator[Finding]:
        """Check for `mplab doctor` that a phone that is in use can shape its own paths. Raises MplabError."""


class EmulatorDriver(ShaperDriver):
    """A link emulator."""

    section: Section = ""
    settings: type[BaseModel] = BaseModel

    def check(self) -> Iterator[Finding]:
        """Check it for `mplab doctor`; change nothing, raise nothing. By default: its programs."""
        missing = [program for program in self.programs if program.find() is None]
        for program in missing:
            yield Finding(f"shaper {self.name}", "missing", f"{program.name}: not found", program.remedy)
        if not missing:
            yield Finding(f"shaper {self.name}", "ok", self.title)

    @abstractmethod
    def open(
        self,
        *,
        air: "Node",
        phone: "Phone",
        proxy: "Node",
        probe_server: str,
        directory: Path,
        wan_delay_ms: Mapping[str, float],
    ) -> "Emulator":
        """Return the emulator, not yet started.

        Args:
            air: the node that has both ends of every emulated link.
            phone: what probes start from.
            proxy: the node that answers probes.
            probe_server: its address and port for them, as the phone sees it.
            directory: where configuration, control socket and logs go.
            wan_delay_ms: one-way delay to the origin's addresses, by prefix.
        """


DRIVERS = Drivers(SHAPERS, ShaperDriver)
"""Name → kind of shaper, of all that are installed."""
_ENTRIES = Drivers(SHAPERS, EntryDriver)  # type: ignore[type-abstract]
_MACHINES = Drivers(SHAPERS, MachineDriver)  # type: ignore[type-abstract]
_INSIDE = Drivers(SHAPERS, InsideDriver)  # type: ignore[type-abstract]
_PHONES = Drivers(SHAPERS, PhoneDriver)  # type: ignore[type-abstract]
_EMULATORS = Drivers(SHAPERS, EmulatorDriver)  # type: ignore[type-abstract]


def driver_of(machine: ShapingMachine[Settings]) -> EntryDriver[Settings]:
    """Return the driver of a machine that has an entry. Raises InputError, LabNotReadyError."""
    return _ENTRIES.load(machine.kind)


def reachable_driver_of(machine: ShapingMachine[Settings]) -> MachineDriver[Settings]:
    """Return the driver of a machine of `LabFile.reachable`. Raises InputError, LabNotReadyError."""
    return machine_driver(machine.kind)


def machine_driver(name: str) -> MachineDriver[Any]:
    """Return the driver of a kind of machine that is reached from here. Raises InputError, LabNotReadyError."""
    return _MACHINES.load(name)


def inside_driver_of(machine: ShapingMachine[Settings]) -> InsideDriver[Settings]:
    """Return the driver of a machine of `LabFile.inside`. Raises InputError, LabNotReadyError."""
    return _INSIDE.load(machine.kind)


def phone_driver_of(machine: ShapingMachine[Settings]) -> PhoneDriver[Settings, Any]:
    """Return the driver of a machine of `LabFile.by_itself`. Raises InputError, LabNotReadyError."""
    return _PHONES.load(machine.kind)


def emulator_driver() -> EmulatorDriver:
    """Return the driver of the link emulator. Raises LabNotReadyError."""
    return _EMULATORS.load(emulator().name)
