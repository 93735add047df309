"""Shaper drivers: settings, abilities, and how to open, check and release a shaper.

Each kind of shaper is a package with a module `driver`, whose object `DRIVER` is registered in the group
``mplab.shapers``. There are four base classes. To *hold* a machine means that no other process can shape it:

* `MachineDriver`: a machine with an entry in the lab file that this host can reach (a router, a server, a phone).
* `InsideDriver`: a machine that a virtual lab boots in its own namespaces.
* `PhoneShaperDriver`: a phone that shapes its own paths; the run sends the commands over its connection to the phone.
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
from mplab.userfiles.labs.machines import Section, ShaperKind, ShapingMachine, emulator

if TYPE_CHECKING:
    from mplab.base.nodes import Node
    from mplab.drivers.phone import Phone
    from mplab.drivers.shaper.owner import Owner
    from mplab.drivers.shaper.protocol import Emulator, HeldMachine

Settings = TypeVar("Settings", bound=BaseModel)
DrivenPhone = TypeVar("DrivenPhone", contravariant=True)  # noqa: PLC0105 - as `Settings`
NOTHING_NEEDED = "nothing needs to be installed: its dead-man's switch runs while it is held"


class ShaperDriver(ShaperKind, ABC):
    """Base class of all shaper drivers. `ShaperKind` documents the attributes that this class inherits from it."""

    programs: tuple[Program, ...] = ()
    """Programs that this kind of shaper needs on this host, in addition to those that every lab needs."""


class EntryDriver(ShaperDriver, Generic[Settings]):
    """Base class of the drivers for shapers that are entries in a lab file."""

    @abstractmethod
    def check(self, machine: ShapingMachine[Settings], lab_file: str) -> Iterator[Finding]:
        """Yield findings about one machine for `mplab doctor`; change nothing, raise nothing.

        Args:
            machine: entry of the machine.
            lab_file: name of the lab file, for remedies.
        """


class MachineState(Protocol):
    """State of a machine, to be shown to users: mplab's files on it, and the process that holds it."""

    def to_json(self) -> dict[str, object]:
        """Return the fields as a dictionary for the option ``--json``."""

    def __str__(self) -> str:
        """Return the state as text: ``held by nobody``."""


class MachineDriver(EntryDriver[Settings]):
    """Base class of drivers for machines that this host can reach: a router, a server, a phone with a root shell."""

    @abstractmethod
    def where(self, machine: ShapingMachine[Settings]) -> str:
        """Return text that identifies the machine, the same for all lab files.

        It is an address (``root@192.168.1.1:22``) or a command line. mplab's lock for the machine is named after this
        text, so only one process at a time can hold the machine.
        """

    @abstractmethod
    def hold(self, machine: ShapingMachine[Settings], owner: "Owner") -> AbstractContextManager["HeldMachine"]:
        """Return a context that holds the machine: no other process can shape it until the context exits.

        Entering raises LabNotReadyError when the machine is unreachable, cannot shape, or has another owner.
        """

    @abstractmethod
    def uses(self, machine: ShapingMachine[Settings]) -> str:
        """Return one phrase about the resource that the entry uses: an SSH login, an interface of this host, a command.

        mplab shows the phrase when it asks the user to allow the lab file.
        """

    @abstractmethod
    def restore(self, label: str, settings: Settings, token: str) -> None:
        """Release a machine whose holder has died; do nothing if the hold named `token` has already ended.

        Args:
            label: name of the machine, for messages.
            settings: entry of the machine in the lab file.
            token: name under which the dead process held the machine; see `Owner.token`.

        Raises:
            MplabError: the machine cannot be reached, or a change could not be undone.
        """

    @abstractmethod
    def give_back(self, machine: ShapingMachine[Settings]) -> None:
        """Undo all changes on the machine and release it, even if another process holds it.

        Raises:
            LabNotReadyError: a change could not be undone.
        """

    @abstractmethod
    def show(self, machine: ShapingMachine[Settings]) -> MachineState:
        """Return, for users, mplab's files on the machine and the process that holds it.

        Raises:
            LabNotReadyError: the machine cannot be reached.
        """

    def install(self, _machine: ShapingMachine[Settings]) -> str:
        """Install the software that a machine must have before it can be held; return a sentence with the result.

        By default, no software is needed. Raises LabNotReadyError on failure.
        """
        return NOTHING_NEEDED

    def remove(self, _machine: ShapingMachine[Settings]) -> str:
        """Remove the software that `install` installs; return a sentence with the result.

        By default, there is no such software. Raises LabNotReadyError on failure.
        """
        return NOTHING_NEEDED


@dataclass(frozen=True)
class Wiring:
    """Wires and routes of a router in a virtual lab.

    Attributes:
        ports: interface of the router → (IP address with prefix length, hardware address).
        towards: interface of the phone → interface of the router that leads to it.
        routes: routes of the router, each as the arguments of one ``ip`` command.
        neighbours: (interface, IP address, hardware address) of each static ARP entry of the router.
        management: addresses, with prefix length, of the ends of the wire for SSH: the lab's end, the router's end.
    """

    ports: Mapping[str, tuple[str, str]]
    towards: Mapping[str, str]
    routes: Sequence[str]
    neighbours: Sequence[tuple[str, str, str]]
    management: tuple[str, str]


class BootedMachine(Protocol):
    """Shaping machine that a virtual lab boots, such as a virtual router."""

    @property
    def machine(self) -> ShapingMachine[BaseModel]:
        """Lab-file entry that describes the started machine like a real one, so that a `MachineDriver` can hold it."""

    def start(self) -> None:
        """Connect the machine's interfaces to the lab, and boot it."""

    def wait(self) -> dict[str, str]:
        """Wait until the machine answers; return the versions of its programs by name.

        Raises:
            LabNotReadyError: the machine does not boot.
        """

    def check_alive(self) -> None:
        """Raise DeviceError when the machine no longer runs."""

    def stop(self) -> None:
        """Stop the machine."""


class InsideDriver(EntryDriver[Settings]):
    """Base class of the drivers for machines that a virtual lab boots in place of its node ``router``."""

    inside = True

    @abstractmethod
    def open(
        self, machine: ShapingMachine[Settings], *, node: "Node", wiring: Wiring, directory: Path, log: Path
    ) -> BootedMachine:
        """Return a machine that the caller must start.

        Args:
            machine: entry of the machine.
            node: node that the machine replaces; the node's interfaces have no addresses.
            wiring: wires and routes of the node.
            directory: private folder for files of the machine.
            log: file for the machine's console output.
        """

    @abstractmethod
    def describe(self) -> dict[str, str]:
        """Return the versions of the machine's software, for ``manifest.json``.

        Raises:
            LabNotReadyError: a part is missing on this host.
        """


class PhoneShaperDriver(ShaperDriver, Generic[Settings, DrivenPhone]):
    """Base class of the drivers for phones that shape their own paths during a run.

    The shaper driver has the same name as the phone driver by which the run controls the phone.
    """

    @abstractmethod
    def hold(
        self, phone: DrivenPhone, machine: ShapingMachine[Settings], owner: "Owner"
    ) -> AbstractContextManager["HeldMachine"]:
        """Return a context that holds `phone`, the connected phone of a run; see `MachineDriver.hold`."""

    @abstractmethod
    def check(self, phone: DrivenPhone, machine: ShapingMachine[Settings]) -> Iterator[Finding]:
        """Yield findings for `mplab doctor` about the shaping of a connected phone.

        Raises:
            MplabError: the connection to the phone is lost.
        """


@dataclass(frozen=True)
class EmulatedNetwork:
    """Nodes, addresses and delays that a virtual lab passes to its link emulator.

    Attributes:
        air: node with both ends of every emulated link.
        phone: phone that sends the probes.
        proxy: node that answers the probes.
        probe_server: address and port of the probe server as the phone sees them.
        directory: folder for configuration, control socket and logs.
        wan_delay_ms: address prefix of origin servers → one-way delay to them, ms.
    """

    air: "Node"
    phone: "Phone"
    proxy: "Node"
    probe_server: str
    directory: Path
    wan_delay_ms: Mapping[str, float]


class EmulatorDriver(ShaperDriver):
    """Base class of the drivers for link emulators of virtual labs."""

    section: Section = ""
    settings: type[BaseModel] = BaseModel

    def check(self) -> Iterator[Finding]:
        """Yield findings for `mplab doctor`; change nothing, raise nothing.

        By default, report only whether `programs` are installed.
        """
        missing = [program for program in self.programs if program.find() is None]
        for program in missing:
            yield Finding(f"shaper {self.name}", "missing", f"{program.name}: not found", program.remedy)
        if not missing:
            yield Finding(f"shaper {self.name}", "ok", self.title)

    @abstractmethod
    def open(self, network: EmulatedNetwork) -> "Emulator":
        """Return an emulator for `network` that the caller must start."""


DRIVERS = Drivers(SHAPERS, ShaperDriver)
"""Name → driver, for all installed kinds of shapers."""
_ENTRIES = Drivers(SHAPERS, EntryDriver)  # type: ignore[type-abstract]
_MACHINES = Drivers(SHAPERS, MachineDriver)  # type: ignore[type-abstract]
_INSIDE = Drivers(SHAPERS, InsideDriver)  # type: ignore[type-abstract]
_PHONES = Drivers(SHAPERS, PhoneShaperDriver)  # type: ignore[type-abstract]
_EMULATORS = Drivers(SHAPERS, EmulatorDriver)  # type: ignore[type-abstract]


def driver_of(machine: ShapingMachine[Settings]) -> EntryDriver[Settings]:
    """Return the driver for a machine in a lab file. Raises as `Drivers.load` does."""
    return _ENTRIES.load(machine.kind)


def reachable_driver_of(machine: ShapingMachine[Settings]) -> MachineDriver[Settings]:
    """Return the driver for a machine that this host can reach (`LabFile.reachable`). Raises as `Drivers.load` does."""
    return machine_driver(machine.kind)


def machine_driver(name: str) -> MachineDriver[Any]:
    """Return the `MachineDriver` that is registered as `name`. Raises as `Drivers.load` does."""
    return _MACHINES.load(name)


def inside_driver_of(machine: ShapingMachine[Settings]) -> InsideDriver[Settings]:
    """Return the driver for a machine that a virtual lab boots (`LabFile.inside`). Raises as `Drivers.load` does."""
    return _INSIDE.load(machine.kind)


def phone_driver_of(machine: ShapingMachine[Settings]) -> PhoneShaperDriver[Settings, Any]:
    """Return the driver for a phone that shapes its own paths (`LabFile.by_itself`). Raises as `Drivers.load` does."""
    return _PHONES.load(machine.kind)


def emulator_driver() -> EmulatorDriver:
    """Return the driver of the link emulator. Raises LabNotReadyError when it cannot be imported."""
    return _EMULATORS.load(emulator().name)
