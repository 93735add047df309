"""Compute the state of a campaign from its events only, for the scheduler, ``mplab campaign status`` and the pages."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from mplab.format.campaign import CampaignState, Failure, JobStatus, ResourceStatus, Try
from mplab.format.campaignevents import (
    CampaignContinued,
    CampaignCut,
    CampaignEvent,
    CampaignFinished,
    CampaignInterrupted,
    CampaignPaused,
    CampaignPlanned,
    CampaignStarted,
    DiskEnough,
    DiskLow,
    JobCompared,
    JobEnded,
    JobFinished,
    JobStarted,
    ResourceQuarantined,
    ResourceReleased,
    ResourceRests,
    ResourceUsed,
)

KEPT_FAILURES = 20
"""Number of last failures that are kept."""


def state_of(events: Iterable[CampaignEvent]) -> CampaignState:
    """Return the state of a campaign after `events`; events of unknown kinds change only `updated`."""
    tracker = CampaignTracker()
    for event in events:
        tracker.feed(event)
    return tracker.state


@dataclass
class CampaignTracker:
    """The state of a campaign, updated event by event."""

    state: CampaignState = field(default_factory=CampaignState)

    def feed(self, event: CampaignEvent) -> None:  # noqa: PLR0912 - one case for each kind of event
        """Update the state with the next event; an event of an unknown kind changes only `updated`."""
        self._set(updated=event.t)
        match event:
            case CampaignPlanned():
                resources = dict.fromkeys(resource for job in event.jobs for resource in job.resources)
                self._set(
                    name=event.name,
                    title=event.title,
                    jobs=tuple(JobStatus(job) for job in event.jobs),
                    resources=tuple(ResourceStatus(name) for name in resources),
                )
            case CampaignStarted():
                self._start(event)
            case CampaignPaused():
                self._set(phase="paused")
            case CampaignContinued():
                self._set(phase="running")
            case CampaignInterrupted():
                self._set(phase="interrupted")
            case CampaignCut():
                self._set(cut=event.reason)
            case CampaignFinished():
                self._set(phase="finished")
            case DiskLow():
                self._set(disk_low=event.reason)
                self._failed(event, "disk", event.reason)
            case DiskEnough():
                self._set(disk_low="")
            case JobStarted():
                self._start_try(event)
            case JobEnded():
                self._end_try(event)
            case JobFinished():
                self._set_job(event.job, state=event.state, reason=event.reason)
            case JobCompared():
                self._set_job(event.job, compared=event.text, worse=not event.passed)
                if not event.passed:
                    self._failed(event, event.job, event.text)
            case ResourceUsed():
                self._count(event)
            case ResourceRests():
                rests = self.state.resource(event.resource).rests + 1
                self._set_resource(event.resource, rests=rests, rests_until=event.until, reason=event.reason)
                self._failed(event, event.resource, event.reason)
            case ResourceQuarantined():
                self._set_resource(event.resource, quarantined=True, rests_until=None, reason=event.reason)
                self._failed(event, event.resource, event.reason)
            case ResourceReleased():
                usable: dict[str, Any] = {"quarantined": False, "rests_until": None, "reason": ""}
                self._set_resource(event.resource, failures=0, rests=0, **usable)

    def _start(self, event: CampaignStarted) -> None:
        """Apply the start or resumption of a campaign.

        The state of jobs that were running when the campaign was killed, or that were left out, becomes "waiting".
        """
        self._set(
            phase="running",
            started=self.state.started if self.state.started is not None else event.t,
            ends_by=event.ends_by,
            jobs=tuple(
                replace(status, state="waiting") if status.state in {"running", "left out"} else status
                for status in self.state.jobs
            ),
            resources=tuple(replace(status, job="") for status in self.state.resources),
            cut="",
            disk_low="",
        )

    def _start_try(self, event: JobStarted) -> None:
        status = self.state.job(event.job)
        tries = (*status.tries, Try(number=event.number, run=event.run, started=event.t))
        self._set_job(event.job, state="running", reason="", tries=tries)
        for name in status.job.resources:
            self._set_resource(name, job=event.job)

    def _end_try(self, event: JobEnded) -> None:
        """Apply the end of a try: the job waits for its next try, unless `JobFinished` follows."""
        status = self.state.job(event.job)
        last = replace(status.tries[-1], ended=event.t, code=event.code, reason=event.reason, blamed=event.blamed)
        self._set_job(event.job, state="waiting", tries=(*status.tries[:-1], last), cells=event.cells)
        for name in status.job.resources:
            self._set_resource(name, job="")
        if event.reason:
            self._failed(event, event.job, event.reason)

    def _count(self, event: ResourceUsed) -> None:
        """Update the number of consecutive failures of each resource that a try used; it is 0 after a good try."""
        for name in event.resources:
            failures = 0 if event.good else self.state.resource(name).failures + 1
            rests = 0 if event.good else self.state.resource(name).rests
            self._set_resource(name, failures=failures, rests=rests, rests_until=None, reason="")

    def _set(self, **changes: Any) -> None:  # noqa: ANN401 - fields of `CampaignState`
        self.state = replace(self.state, **changes)

    def _set_job(self, job_id: str, **changes: Any) -> None:  # noqa: ANN401 - fields of `JobStatus`
        jobs = self.state.jobs
        self._set(jobs=tuple(replace(status, **changes) if status.job.id == job_id else status for status in jobs))

    def _set_resource(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - fields of `ResourceStatus`
        known = self.state.resources
        self._set(resources=tuple(replace(status, **changes) if status.name == name else status for status in known))

    def _failed(self, event: CampaignEvent, about: str, text: str) -> None:
        failures = (*self.state.failures, Failure(event.t, about, text))
        self._set(failures=failures[-KEPT_FAILURES:])
