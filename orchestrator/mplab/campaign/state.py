"""How far a campaign is: a pure reading of its events, for the scheduler, ``mplab nightly status`` and its page."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Literal

from mplab.format.events import Event

JobState = Literal["waiting", "running", "done", "failed", "left out"]
CampaignPhase = Literal["planned", "running", "paused", "interrupted", "finished"]
KEPT_FAILURES = 20
"""So many of the last failures are kept."""


@dataclass(frozen=True)
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
    given: Mapping[str, object] = field(default_factory=dict)
    """Values of the experiment's variables."""

    @property
    def block_s(self) -> float:
        """Time that its first block is taken to need, seconds: a job is not begun for less."""
        return self.estimate_s / self.blocks


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Cells:
    """Outcomes of a run's cells."""

    total: int = 0
    ok: int = 0
    invalid: int = 0
    failed: int = 0
    left_out: int = 0


@dataclass(frozen=True)
class JobStatus:
    """A job at the moment of the last event."""

    job: Job
    state: JobState = "waiting"
    tries: tuple[Try, ...] = ()
    cells: Cells = Cells()
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


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Failure:
    """Something that went wrong."""

    t: float
    """Unix seconds."""
    about: str
    """Id of a job, or name of a resource, or ``disk``."""
    text: str


@dataclass(frozen=True)
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

    @classmethod
    def from_events(cls, events: Iterable[Event]) -> "CampaignState":
        """The state after `events`; names that it does not know change nothing."""
        tracker = CampaignTracker()
        for event in events:
            tracker.feed(event)
        return tracker.state

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

    def to_json(self) -> dict[str, object]:
        """For programs: everything, with each job's own fields beside its state."""
        content = asdict(self)
        content["jobs"] = [{**item.pop("job"), **item} for item in content["jobs"]]
        return content


@dataclass
class CampaignTracker:
    """Follows a campaign event by event."""

    state: CampaignState = field(default_factory=CampaignState)

    def feed(self, event: Event) -> None:
        """Take the next event into account."""
        self.state = replace(self.state, updated=float(event["t"]))
        feed = getattr(self, f"_{event['event']}", None)
        if feed is not None:
            feed(event)

    def _campaign_planned(self, event: Event) -> None:
        names = Job.__dataclass_fields__
        jobs = [
            Job(**{**{k: v for k, v in item.items() if k in names}, "resources": tuple(item["resources"])})
            for item in event["jobs"]
        ]
        resources = dict.fromkeys(resource for job in jobs for resource in job.resources)
        self.state = replace(
            self.state,
            name=event["name"],
            title=event["title"],
            jobs=tuple(JobStatus(job) for job in jobs),
            resources=tuple(ResourceStatus(name) for name in resources),
        )

    def _campaign_started(self, event: Event) -> None:
        """Also of one that goes on: what ran when it was killed waits again."""
        started = self.state.started if self.state.started is not None else float(event["t"])
        jobs = tuple(
            replace(status, state="waiting") if status.state in {"running", "left out"} else status
            for status in self.state.jobs
        )
        resources = tuple(replace(status, job="") for status in self.state.resources)
        self.state = replace(
            self.state,
            phase="running",
            started=started,
            ends_by=event.get("ends_by"),
            jobs=jobs,
            resources=resources,
            cut="",
            disk_low="",
        )

    def _campaign_paused(self, _event: Event) -> None:
        self.state = replace(self.state, phase="paused")

    def _campaign_continued(self, _event: Event) -> None:
        self.state = replace(self.state, phase="running")

    def _campaign_interrupted(self, _event: Event) -> None:
        self.state = replace(self.state, phase="interrupted")

    def _campaign_cut(self, event: Event) -> None:
        self.state = replace(self.state, cut=event["reason"])

    def _campaign_finished(self, _event: Event) -> None:
        self.state = replace(self.state, phase="finished")

    def _disk_low(self, event: Event) -> None:
        self.state = replace(self.state, disk_low=event["reason"])
        self._failed(event, "disk", event["reason"])

    def _disk_enough(self, _event: Event) -> None:
        self.state = replace(self.state, disk_low="")

    def _job_started(self, event: Event) -> None:
        status = self.state.job(event["job"])
        made = Try(number=event["try"], run=event["run"], started=float(event["t"]))
        self._set_job(replace(status, state="running", reason="", tries=(*status.tries, made)))
        for name in status.job.resources:
            self._set_resource(replace(self.state.resource(name), job=status.job.id))

    def _job_ended(self, event: Event) -> None:
        """A try is over; the job waits for the next one, or `_job_finished` follows."""
        status = self.state.job(event["job"])
        last = replace(status.tries[-1], ended=float(event["t"]), code=event["code"], reason=event["reason"])
        last = replace(last, blamed=event.get("blamed", True))
        cells = Cells(**{key: value for key, value in event["cells"].items() if key in Cells.__dataclass_fields__})
        self._set_job(replace(status, state="waiting", tries=(*status.tries[:-1], last), cells=cells))
        for name in status.job.resources:
            self._set_resource(replace(self.state.resource(name), job=""))
        if event["reason"]:
            self._failed(event, status.job.id, event["reason"])

    def _job_finished(self, event: Event) -> None:
        status = self.state.job(event["job"])
        self._set_job(replace(status, state=event["state"], reason=event["reason"]))

    def _job_compared(self, event: Event) -> None:
        status = self.state.job(event["job"])
        self._set_job(replace(status, compared=event["text"], worse=not event["passed"]))
        if not event["passed"]:
            self._failed(event, status.job.id, event["text"])

    def _resource_used(self, event: Event) -> None:
        """What a job has said of a resource that it held."""
        for name in event["resources"]:
            status = replace(self.state.resource(name), rests_until=None, reason="")
            if event["good"]:
                self._set_resource(replace(status, failures=0, rests=0))
            else:
                self._set_resource(replace(status, failures=status.failures + 1))

    def _resource_rests(self, event: Event) -> None:
        status = self.state.resource(event["resource"])
        rests = status.rests + 1
        self._set_resource(replace(status, rests=rests, rests_until=event["until"], reason=event["reason"]))
        self._failed(event, status.name, event["reason"])

    def _resource_quarantined(self, event: Event) -> None:
        status = self.state.resource(event["resource"])
        self._set_resource(replace(status, quarantined=True, rests_until=None, reason=event["reason"]))
        self._failed(event, status.name, event["reason"])

    def _resource_released(self, event: Event) -> None:
        status = self.state.resource(event["resource"])
        self._set_resource(replace(status, quarantined=False, failures=0, rests=0, rests_until=None, reason=""))

    def _set_job(self, status: JobStatus) -> None:
        jobs = tuple(status if other.job.id == status.job.id else other for other in self.state.jobs)
        self.state = replace(self.state, jobs=jobs)

    def _set_resource(self, status: ResourceStatus) -> None:
        resources = tuple(status if other.name == status.name else other for other in self.state.resources)
        self.state = replace(self.state, resources=resources)

    def _failed(self, event: Event, about: str, text: str) -> None:
        failures = (*self.state.failures, Failure(float(event["t"]), about, text))
        self.state = replace(self.state, failures=failures[-KEPT_FAILURES:])
