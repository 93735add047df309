"""Models of a campaign: its jobs, ``campaign.json``, and its state, which `mplab.campaign.state` computes from events.

A campaign is a series of runs, such as those of one night. A job is one planned run of it.
"""

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
    """A planned run of a campaign: one experiment with one phone of one lab."""

    id: str
    """``01-apps-phone-1``."""
    experiment: str
    """Name of the experiment."""
    title: str
    file: str
    """Absolute path of the experiment file."""
    sha256: str
    """SHA-256, hex, of everything that the experiment was read from. A campaign resumes only with equal content."""
    lab: str
    """Absolute path of the lab file; "": the experiment file names the lab."""
    phone: str
    """Name of the phone in the lab file; "": its only phone."""
    resources: tuple[str, ...]
    """Resources that no other job may use while this one runs."""
    cells: int
    blocks: int
    estimate_s: float
    given: Settings = dataclasses.field(default_factory=dict)
    """Values of the experiment's variables."""

    @property
    def block_s(self) -> float:
        """Estimated duration of the first block of the job's run, seconds.

        A job does not start if the campaign has less time left.
        """
        return self.estimate_s / self.blocks


@dataclass(frozen=True, config=CONFIG)
class Try:
    """One try at a job: it starts the job's run, or resumes the run of an earlier try."""

    number: int
    """Number of the try, from 1."""
    run: str
    """Name of the run directory."""
    started: float
    """Unix seconds."""
    ended: float | None = None
    """Unix seconds; None: the try is running, or was killed with its campaign."""
    code: int | None = None
    """Exit code; negative: the signal that killed it."""
    reason: str = ""
    """Reason why the try failed; "": it did not fail."""
    blamed: bool = False
    """True if the try counts against the job's limit of tries. A stop of the campaign or a busy resource does not."""


@dataclass(frozen=True, config=CONFIG)
class CellCounts:
    """Number of a run's cells, in total and by outcome."""

    total: int = 0
    ok: int = 0
    invalid: int = 0
    failed: int = 0
    left_out: int = 0


@dataclass(frozen=True, config=CONFIG)
class JobStatus:
    """State of a job after the campaign's last event. In JSON, the fields of `job` are next to those of the state."""

    job: Job
    state: JobState = "waiting"
    tries: tuple[Try, ...] = ()
    cells: CellCounts = CellCounts()
    reason: str = ""
    """Reason why the job failed or was left out."""
    compared: str = ""
    """Result of the comparison with earlier runs; "": not compared."""
    worse: bool = False
    """The comparison failed, or a budget is exceeded."""

    @property
    def run(self) -> str:
        """Name of the job's run directory; "" before the first try."""
        return self.tries[-1].run if self.tries else ""

    @model_serializer(mode="wrap")
    def _flat(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        content: dict[str, JsonValue] = handler(self)
        job = content.pop("job")
        return {**job, **content} if isinstance(job, dict) else content


@dataclass(frozen=True, config=CONFIG)
class ResourceStatus:
    """State of a phone, router, server or lab after the campaign's last event."""

    name: str
    job: str = ""
    """Id of the job that holds the resource; "": no job."""
    failures: int = 0
    """Number of consecutive failed tries with the resource."""
    rests: int = 0
    """Number of consecutive rests after which the resource still failed."""
    rests_until: float | None = None
    """Unix seconds at which the rest ends; None: the resource does not rest."""
    quarantined: bool = False
    """The resource stays unused until a user releases it."""
    reason: str = ""
    """Reason why the resource rests or is quarantined."""

    @property
    def stopped(self) -> bool:
        """Return whether the resource rests or is quarantined, so that the campaign does not use it."""
        return self.quarantined or self.rests_until is not None


@dataclass(frozen=True, config=CONFIG)
class Failure:
    """One failure of a job, of a resource or of the disk, for status pages and messages."""

    t: float
    """Unix seconds."""
    about: str
    """Job id, name of a resource, or ``disk``."""
    text: str


@dataclass(frozen=True, config=CONFIG)
class CampaignState:
    """State of a campaign after its last event."""

    phase: CampaignPhase = "planned"
    """A killed campaign stays "running". The campaign is alive only if a process holds its lock."""
    name: str = ""
    title: str = ""
    jobs: tuple[JobStatus, ...] = ()
    resources: tuple[ResourceStatus, ...] = ()
    failures: tuple[Failure, ...] = ()
    """Latest failures, oldest first."""
    disk_low: str = ""
    """Reason why no job starts for lack of disk space; "": there is enough."""
    cut: str = ""
    """Reason why jobs were left out; "": none were."""
    started: float | None = None
    updated: float | None = None
    ends_by: float | None = None
    """Unix seconds by which the campaign must end; None: it ends when every job is finished."""

    def job(self, job_id: str) -> JobStatus:
        """Return the job with this id. Raises KeyError."""
        return {status.job.id: status for status in self.jobs}[job_id]

    def resource(self, name: str) -> ResourceStatus:
        """Return the resource with this name. Raises KeyError."""
        return {status.name: status for status in self.resources}[name]

    @property
    def good(self) -> bool:
        """Return whether every job is done."""
        return not self.not_done

    @property
    def not_done(self) -> tuple[JobStatus, ...]:
        """Return the jobs that failed, were left out, or have not ended."""
        return tuple(status for status in self.jobs if status.state != "done")

    @property
    def failed(self) -> bool:
        """Return whether a job failed, or was left out for another reason than the campaign's time limit."""
        return any(status.state == "failed" or status.reason != self.cut for status in self.not_done)


class CampaignRecord(Record):
    """``campaign.json``: files, host and versions of a campaign."""

    model_config = ConfigDict(extra="forbid")

    format: Literal[1] = 1
    campaign: str
    """Name of the campaign directory."""
    file: str
    """Absolute path of the campaign file."""
    runs: str
    """Absolute path of the folder of its runs."""
    host: HostRecord
    versions: dict[str, str]
    git: GitRecord
    started: str
    """ISO 8601, UTC."""
