"""Shaper drivers: settings, abilities, and how to open, check and release a shaper.

A kind is a package with a module `driver` that has an object `DRIVER`, registered in the group ``mplab.shapers``. There
are four base classes. To *hold* a machine means that no other process can shape it:

* `MachineDriver`: a machine with an entry in the lab file that this host can reach (a router, a server, a phone).
* `InsideDriver`: a machine that a virtual lab boots in its own namespaces.
* `PhoneShaperDriver`: a phone that shapes its own paths; the commands use the connection of the run.
* `EmulatorDriver`: the link emulator of the virtual lab.

Reading a lab file imports the module `driver`. The module therefore imports slow modules only when they are used.
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
    """Programs that this host needs in addition to those of every lab."""


class EntryDriver(ShaperDriver, Generic[Settings]):
    """A kind of shaper with entries in lab files."""

    @abstractmethod
    def check(self, machine: ShapingMachine[Settings], lab_file: str) -> Iterator[Finding]:
        """Yield findings about one machine for `mplab doctor`; change nothing, raise nothing.

        Args:
            machine: entry of the machine.
            lab_file: name of the lab file, for remedies.
        """


class MachineState(Protocol):
    """Installed files and holder of a machine."""

    def to_json(self) -> dict[str, object]:
        """Return the fields for ``--json``."""

    def __str__(self) -> str:
        """Return the state as text: ``held by nobody``."""


class MachineDriver(EntryDriver[Settings]):
    """A kind of machine that this host can reach."""

    @abstractmethod
    def where(self, machine: ShapingMachine[Settings]) -> str:
        """Return the address of the machine.

        The name of the machine's lock is made from the address, so all lab files use the same lock.
        """

    @abstractmethod
    def hold(self, machine: ShapingMachine[Settings], owner: "Owner") -> AbstractContextManager["HeldMachine"]:
        """Return a context that holds the machine: no other process can shape it until the context exits.

        Entering raises LabNotReadyError when the machine is unreachable, cannot shape, or has another owner.
        """

    @abstractmethod
    def uses(self, machine: ShapingMachine[Settings]) -> str:
        """Return the machine's resources outside of a virtual lab's namespaces, as one phrase.

        mplab shows the phrase to the user who must allow a lab file.
        """

    @abstractmethod
    def restore(self, label: str, settings: Settings, token: str) -> None:
        """Release a machine that a dead process held; do nothing when the hold `token` has ended.

        Args:
            label: name of the machine, for messages.
            settings: entry of the machine in the lab file.
            token: name of the hold; see `Owner.token`.

        Raises:
            MplabError: the machine cannot be reached, or a change could not be undone.
        """

    @abstractmethod
    def give_back(self, machine: ShapingMachine[Settings]) -> None:
        """Release the machine, whoever holds it: undo all changes.

        Raises:
            LabNotReadyError: a change could not be undone.
        """

    @abstractmethod
    def show(self, machine: ShapingMachine[Settings]) -> MachineState:
        """Return installed files and holder. Raises LabNotReadyError when the machine cannot be reached."""

    def install(self, _machine: ShapingMachine[Settings]) -> str:
        """Install the software that a hold needs; return a sentence about it. Raises LabNotReadyError on failure."""
        return NOTHING_NEEDED

    def remove(self, _machine: ShapingMachine[Settings]) -> str:
        """Remove the software of `install`; return a sentence about it. Raises LabNotReadyError on failure."""
        return NOTHING_NEEDED


@dataclass(frozen=True)
class Wiring:
    """Wires and routes of a router in a virtual lab.

    Attributes:
        ports: interface of the router → (IP address with prefix length, hardware address).
        towards: interface of the phone → interface of the router towards it.
        routes: routes of the router, each as the arguments of one ``ip`` command.
        neighbours: (interface, IP address, hardware address) of each known neighbour.
        management: addresses, with prefix length, of both ends of the management wire: lab, router.
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
        """Entry with which the started machine can be held like a real one: its kind has a `MachineDriver`."""

    def start(self) -> None:
        """Wire the machine and boot it."""

    def wait(self) -> dict[str, str]:
        """Wait until the machine answers; return name of program → version.

        Raises:
            LabNotReadyError: the machine does not boot.
        """

    def check_alive(self) -> None:
        """Raise DeviceError when the machine has ended."""

    def stop(self) -> None:
        """Stop the machine."""


class InsideDriver(EntryDriver[Settings]):
    """A kind of machine that a virtual lab boots to replace its node ``router``."""

    inside = True

    @abstractmethod
    def open(
        self, machine: ShapingMachine[Settings], *, node: "Node", wiring: Wiring, directory: Path, log: Path
    ) -> BootedMachine:
        """Return the machine, not yet started.

        Args:
            machine: entry of the machine.
            node: node that the machine replaces; the node's interfaces have no addresses.
            wiring: wires and routes of the node.
            directory: private folder for files of the machine.
            log: file for the machine's console output.
        """

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the versions of the machine's parts, for ``manifest.json``.

        Raises:
            LabNotReadyError: a part is missing on this host.
        """


class PhoneShaperDriver(ShaperDriver, Generic[Settings, DrivenPhone]):
    """A kind of phone that shapes its own paths during a run.

    The shaper driver has the same name as the driver of the phone.
    """

    @abstractmethod
    def hold(
        self, phone: DrivenPhone, machine: ShapingMachine[Settings], owner: "Owner"
    ) -> AbstractContextManager["HeldMachine"]:
        """See `MachineDriver.hold`; `phone` is the phone of the run."""

    @abstractmethod
    def check(self, phone: DrivenPhone, machine: ShapingMachine[Settings]) -> Iterator[Finding]:
        """Yield findings for `mplab doctor` about the shaping of a connected phone.

        Raises:
            MplabError: the phone is lost.
        """


@dataclass(frozen=True)
class EmulatedNetwork:
    """Parts of a virtual lab that its link emulator connects.

    Attributes:
        air: node with both ends of every emulated link.
        phone: sends the probes.
        proxy: node that answers probes.
        probe_server: address and port of the probe server as the phone sees them.
        directory: folder for configuration, control socket and logs.
        wan_delay_ms: address prefix of the origin → one-way delay to it, ms.
    """

    air: "Node"
    phone: "Phone"
    proxy: "Node"
    probe_server: str
    directory: Path
    wan_delay_ms: Mapping[str, float]


class EmulatorDriver(ShaperDriver):
    """A link emulator."""

    section: Section = ""
    settings: type[BaseModel] = BaseModel

    def check(self) -> Iterator[Finding]:
        """Yield findings for `mplab doctor`; change nothing, raise nothing. The default checks `programs`."""
        missing = [program for program in self.programs if program.find() is None]
        for program in missing:
            yield Finding(f"shaper {self.name}", "missing", f"{program.name}: not found", program.remedy)
        if not missing:
            yield Finding(f"shaper {self.name}", "ok", self.title)

    @abstractmethod
    def open(self, network: EmulatedNetwork) -> "Emulator":
        """Return the emulator, not yet started."""


DRIVERS = Drivers(SHAPERS, ShaperDriver)
"""Name → kind of shaper, for all installed kinds."""
_ENTRIES = Drivers(SHAPERS, EntryDriver)  # type: ignore[type-abstract]
_MACHINES = Drivers(SHAPERS, MachineDriver)  # type: ignore[type-abstract]
_INSIDE = Drivers(SHAPERS, InsideDriver)  # type: ignore[type-abstract]
_PHONES = Drivers(SHAPERS, PhoneShaperDriver)  # type: ignore[type-abstract]
_EMULATORS = Drivers(SHAPERS, EmulatorDriver)  # type: ignore[type-abstract]


def driver_of(machine: ShapingMachine[Settings]) -> EntryDriver[Settings]:
    """Return the driver of a machine's entry. Raises as `Drivers.load` does."""
    return _ENTRIES.load(machine.kind)


def reachable_driver_of(machine: ShapingMachine[Settings]) -> MachineDriver[Settings]:
    """Return the driver of a machine in `LabFile.reachable`. Raises as `Drivers.load` does."""
    return machine_driver(machine.kind)


def machine_driver(name: str) -> MachineDriver[Any]:
    """Return the driver of a kind of machine that this host can reach. Raises as `Drivers.load` does."""
    return _MACHINES.load(name)


def inside_driver_of(machine: ShapingMachine[Settings]) -> InsideDriver[Settings]:
    """Return the driver of a machine in `LabFile.inside`. Raises as `Drivers.load` does."""
    return _INSIDE.load(machine.kind)


def phone_driver_of(machine: ShapingMachine[Settings]) -> PhoneShaperDriver[Settings, Any]:
    """Return the driver of a machine in `LabFile.by_itself`. Raises as `Drivers.load` does."""
    return _PHONES.load(machine.kind)


def emulator_driver() -> EmulatorDriver:
    """Return the driver of the link emulator. Raises LabNotReadyError when it cannot be imported."""
    return _EMULATORS.load(emulator().name)
