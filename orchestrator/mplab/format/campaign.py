"""A campaign: ``campaign.json``, its jobs, and its state, which is a reading of its events (`mplab.campaign.state`)."""

import dataclasses
from typing import Literal

from pydantic import ConfigDict, JsonValue, SerializerFunctionWrapHandler, model_serializer
from pydantic.dataclasses import dataclass

from mplab.format.manifest import GitRecord, HostRecord
from mplab.format.record import CONFIG, Record, Settings

JobState = Literal["waiting", "running", "done", "failed", "left out"]
CampaignPhase = Literal["planned", "running", "paused", "interrupted", "finished"]


@dataclass(frozen=True, config=CONFIG)
class Job:
    """One experiment in one laboratory: what becomes one run."""

    id: str
    """``01-apps-phone-1``."""
    experiment: str
    """Its name."""
    title: str
    file: str
    """The experiment file, absolute."""
    sha256: str
    """Of all that the experiment was read from, hex: a campaign that goes on does so with the same experiment."""
    lab: str
    """The lab file, absolute; "": what the experiment file names."""
    phone: str
    """Of the lab file; "": its only one."""
    resources: tuple[str, ...]
    """What nobody else may use meanwhile."""
    cells: int
    blocks: int
    estimate_s: float
    given: Settings = dataclasses.field(default_factory=dict)
    """Values of the experiment's variables."""

    @property
    def block_s(self) -> float:
        """Time that its first block is taken to need, seconds: a job is not begun for less."""
        return self.estimate_s / self.blocks


@dataclass(frozen=True, config=CONFIG)
class Try:
    """One start of a job's run: from nothing, or going on with it."""

    number: int
    """From 1."""
    run: str
    """Name of the run directory."""
    started: float
    """Unix seconds."""
    ended: float | None = None
    """Unix seconds; None: it is running, or was killed with its campaign."""
    code: int | None = None
    """Exit code; negative: the signal that killed it."""
    reason: str = ""
    """Why it was not good."""
    blamed: bool = False
    """It counts among the tries that a job has: it was not the campaign that ended it."""


@dataclass(frozen=True, config=CONFIG)
class CellCounts:
    """Outcomes of a run's cells."""

    total: int = 0
    ok: int = 0
    invalid: int = 0
    failed: int = 0
    left_out: int = 0


@dataclass(frozen=True, config=CONFIG)
class JobStatus:
    """A job at the moment of the last event. A record has the fields of the job next to those of its state."""

    job: Job
    state: JobState = "waiting"
    tries: tuple[Try, ...] = ()
    cells: CellCounts = CellCounts()
    reason: str = ""
    """Why it failed or was left out."""
    compared: str = ""
    """What the comparison with earlier runs found; "": not compared."""
    worse: bool = False
    """That comparison failed, or a budget is broken."""

    @property
    def run(self) -> str:
        """Name of its run directory; "" before the first try."""
        return self.tries[-1].run if self.tries else ""

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        content: dict[str, JsonValue] = handler(self)
        job = content.pop("job")
        return {**job, **content} if isinstance(job, dict) else content


@dataclass(frozen=True, config=CONFIG)
class ResourceStatus:
    """A phone, router, server or lab at the moment of the last event."""

    name: str
    job: str = ""
    """Id of the job that holds it; "": none."""
    failures: int = 0
    """Tries in a row that went wrong with it."""
    rests: int = 0
    """Rests in a row that did not help."""
    rests_until: float | None = None
    """Unix seconds: it is not used before; None: it is used."""
    quarantined: bool = False
    """Not used again until somebody releases it."""
    reason: str = ""
    """Why it rests or is in quarantine."""


@dataclass(frozen=True, config=CONFIG)
class Failure:
    """Something that went wrong."""

    t: float
    """Unix seconds."""
    about: str
    """Id of a job, or name of a resource, or ``disk``."""
    text: str


@dataclass(frozen=True, config=CONFIG)
class CampaignState:
    """A campaign at the moment of its last event."""

    phase: CampaignPhase = "planned"
    """A killed campaign stays "running": whether somebody still holds its lock tells."""
    name: str = ""
    title: str = ""
    jobs: tuple[JobStatus, ...] = ()
    resources: tuple[ResourceStatus, ...] = ()
    failures: tuple[Failure, ...] = ()
    """The last ones, oldest first."""
    disk_low: str = ""
    """Why no job is begun for want of space; ""."""
    cut: str = ""
    """Why jobs were left out; ""."""
    started: float | None = None
    updated: float | None = None
    ends_by: float | None = None
    """Unix seconds: when it is to have ended; None: when everything is done."""

    def job(self, job_id: str) -> JobStatus:
        """The job of that id. Raises KeyError."""
        return {status.job.id: status for status in self.jobs}[job_id]

    def resource(self, name: str) -> ResourceStatus:
        """The resource of that name. Raises KeyError."""
        return {status.name: status for status in self.resources}[name]

    @property
    def good(self) -> bool:
        """Every job is done."""
        return all(status.state == "done" for status in self.jobs)


class CampaignRecord(Record):
    """``campaign.json``: where the campaign was asked, and by what it is run."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    campaign: str
    """Name of its directory."""
    file: str
    """The campaign file, absolute."""
    runs: str
    """Folder of its runs, absolute."""
    host: HostRecord
    versions: dict[str, str]
    git: GitRecord
    started: str
    """ISO 8601, UTC."""
