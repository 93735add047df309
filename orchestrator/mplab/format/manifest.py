"""``manifest.json``: the description of a run, written once before its first cell."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mplab.format.experiment import ExperimentRecord, TransportRecord
from mplab.format.plan import Plan
from mplab.format.record import LENIENT, OpenRecord, Record, RunId, Settings, upgrade_lab


class HostRecord(OpenRecord):
    """Host that executed the run: kernel, processors, memory, distribution."""

    kernel: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    distribution: str = ""
    mptcp: dict[str, str | int] = Field(default_factory=dict)
    """Values of the net.mptcp sysctls."""


class GitRecord(OpenRecord):
    """Checkout of mplab that executed the run; no commit: mplab was not run from a checkout."""

    commit: str | None = None
    dirty: bool = False


class ContainersRecord(OpenRecord):
    """Container images of a lab."""

    images: dict[str, str] = Field(default_factory=dict)
    """Image name → digest."""


class LabRecord(OpenRecord):
    """Lab of a run. Keys that are not declared here hold the facts that the lab's devices report about themselves."""

    kind: str = ""
    same_clock: bool = False
    """True if phone and proxy have the same clock."""
    phone: str = ""
    """Name of the phone in the lab file."""
    paths: Settings = Field(default_factory=dict)
    """Interface of the phone → device that shapes its path."""
    file: Settings = Field(default_factory=dict)
    """Content of the lab file."""
    containers: Annotated[ContainersRecord, LENIENT] = ContainersRecord()


class Manifest(Record):
    """Content of ``manifest.json``: the description of a run."""

    format: Literal[1] = 1
    run_id: RunId
    experiment: ExperimentRecord
    plan: Plan = Plan()
    lab: Annotated[LabRecord, BeforeValidator(upgrade_lab)] = LabRecord()
    host: Annotated[HostRecord, LENIENT] = HostRecord()
    versions: Settings = Field(default_factory=dict)
    git: Annotated[GitRecord, LENIENT] = GitRecord()
    started: str = ""
    """ISO 8601, UTC."""

    @property
    def transports(self) -> tuple[TransportRecord, ...]:
        """Transports of the experiment in its order, each with a title, a colour and a marker."""
        return tuple(transport.dressed(position) for position, transport in enumerate(self.experiment.transports))

    @property
    def same_clock(self) -> bool:
        """Return whether phone and proxy have the same clock, because they are on one machine."""
        return self.lab.same_clock
