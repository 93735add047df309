"""``manifest.json``: what a run is made of, written once, before its first cell."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mplab.format.experiment import Experiment, Transport
from mplab.format.plan import Plan
from mplab.format.record import LENIENT, OpenRecord, Record, RunId, Settings
from mplab.format.upgrades import upgrade_lab


class HostRecord(OpenRecord):
    """The machine that the run was on."""

    kernel: str = ""
    cpus: int = 0
    memory_bytes: int = 0
    distribution: str = ""
    mptcp: dict[str, str | int] = Field(default_factory=dict)
    """The net.mptcp sysctls."""


class GitRecord(OpenRecord):
    """The checkout that the run was made with; no commit: not a checkout."""

    commit: str | None = None
    dirty: bool = False


class ContainersRecord(OpenRecord):
    """The containers of a lab."""

    images: dict[str, str] = Field(default_factory=dict)
    """Name → digest."""


class LabRecord(OpenRecord):
    """The lab of a run, with what its parts say of themselves in further keys."""

    kind: str = ""
    same_clock: bool = False
    """Phone and proxy have one clock."""
    phone: str = ""
    """Its name in the lab file."""
    paths: Settings = Field(default_factory=dict)
    """The phone's interface → where its path is shaped."""
    file: Settings = Field(default_factory=dict)
    """The lab file."""
    containers: Annotated[ContainersRecord, LENIENT] = ContainersRecord()


class Manifest(Record):
    """``manifest.json``."""

    format: Literal[1] = 1
    run_id: RunId
    experiment: Experiment
    plan: Plan = Plan()
    lab: Annotated[LabRecord, BeforeValidator(upgrade_lab)] = LabRecord()
    host: Annotated[HostRecord, LENIENT] = HostRecord()
    versions: Settings = Field(default_factory=dict)
    git: Annotated[GitRecord, LENIENT] = GitRecord()
    started: str = ""
    """ISO 8601, UTC."""

    @property
    def transports(self) -> tuple[Transport, ...]:
        """The transports in their order, each with a title, a colour and a marker."""
        return tuple(one.dressed(position) for position, one in enumerate(self.experiment.transports))

    @property
    def same_clock(self) -> bool:
        """Phone and proxy have one clock: they are on one machine."""
        return self.lab.same_clock
