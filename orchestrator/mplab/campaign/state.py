"""Compute the state of a campaign from its events only, for the scheduler, ``mplab nightly status`` and the page."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod

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
    """Return the state after `events`; unknown events change nothing."""
    tracker = CampaignTracker()
    for event in events:
        tracker.feed(event)
    return tracker.state


@dataclass
class CampaignTracker:
    """The state of a campaign, updated event by event."""

    state: CampaignState = field(default_factory=CampaignState)

    def feed(self, event: CampaignEvent) -> None:
        """Update the state with the next event."""
        self.state = replace(self.state, updated=event.t)
        self._take(event)

    @singledispatchmethod
    def _take(self, event: CampaignEvent) -> None:
        """Ignore an event of an unknown kind."""

    @_take.register
    def _campaign_planned(self, event: CampaignPlanned) -> None:
        resources = dict.fromkeys(resource for job in event.jobs for resource in job.resources)
        self.state = replace(
            self.state,
            name=event.name,
            title=event.title,
            jobs=tuple(JobStatus(job) for job in event.jobs),
            resources=tuple(ResourceStatus(name) for name in resources),
        )

    @_take.register
    def _campaign_started(self, event: CampaignStarted) -> None:
        """Start or resume: jobs that were running when the campaign was killed wait again."""
        started = self.state.started if self.state.started is not None else event.t
        jobs = tuple(
            replace(status, state="waiting") if status.state in {"running", "left out"} else status
            for status in self.state.jobs
        )
        resources = tuple(replace(status, job="") for status in self.state.resources)
        self.state = replace(
            self.state,
            phase="running",
            started=started,
            ends_by=event.ends_by,
            jobs=jobs,
            resources=resources,
            cut="",
            disk_low="",
        )

    @_take.register
    def _campaign_paused(self, _event: CampaignPaused) -> None:
        self.state = replace(self.state, phase="paused")

    @_take.register
    def _campaign_continued(self, _event: CampaignContinued) -> None:
        self.state = replace(self.state, phase="running")

    @_take.register
    def _campaign_interrupted(self, _event: CampaignInterrupted) -> None:
        self.state = replace(self.state, phase="interrupted")

    @_take.register
    def _campaign_cut(self, event: CampaignCut) -> None:
        self.state = replace(self.state, cut=event.reason)

    @_take.register
    def _campaign_finished(self, _event: CampaignFinished) -> None:
        self.state = replace(self.state, phase="finished")

    @_take.register
    def _disk_low(self, event: DiskLow) -> None:
        self.state = replace(self.state, disk_low=event.reason)
        self._failed(event, "disk", event.reason)

    @_take.register
    def _disk_enough(self, _event: DiskEnough) -> None:
        self.state = replace(self.state, disk_low="")

    @_take.register
    def _job_started(self, event: JobStarted) -> None:
        status = self.state.job(event.job)
        made = Try(number=event.number, run=event.run, started=event.t)
        self._set_job(replace(status, state="running", reason="", tries=(*status.tries, made)))
        for name in status.job.resources:
            self._set_resource(replace(self.state.resource(name), job=status.job.id))

    @_take.register
    def _job_ended(self, event: JobEnded) -> None:
        """End a try: the job waits for the next one, unless `_job_finished` follows."""
        status = self.state.job(event.job)
        last = replace(status.tries[-1], ended=event.t, code=event.code, reason=event.reason, blamed=event.blamed)
        self._set_job(replace(status, state="waiting", tries=(*status.tries[:-1], last), cells=event.cells))
        for name in status.job.resources:
            self._set_resource(replace(self.state.resource(name), job=""))
        if event.reason:
            self._failed(event, status.job.id, event.reason)

    @_take.register
    def _job_finished(self, event: JobFinished) -> None:
        status = self.state.job(event.job)
        self._set_job(replace(status, state=event.state, reason=event.reason))

    @_take.register
    def _job_compared(self, event: JobCompared) -> None:
        status = self.state.job(event.job)
        self._set_job(replace(status, compared=event.text, worse=not event.passed))
        if not event.passed:
            self._failed(event, status.job.id, event.text)

    @_take.register
    def _resource_used(self, event: ResourceUsed) -> None:
        """Count the result of a try for each resource that it used."""
        for name in event.resources:
            status = replace(self.state.resource(name), rests_until=None, reason="")
            if event.good:
                self._set_resource(replace(status, failures=0, rests=0))
            else:
                self._set_resource(replace(status, failures=status.failures + 1))

    @_take.register
    def _resource_rests(self, event: ResourceRests) -> None:
        status = self.state.resource(event.resource)
        rests = status.rests + 1
        self._set_resource(replace(status, rests=rests, rests_until=event.until, reason=event.reason))
        self._failed(event, status.name, event.reason)

    @_take.register
    def _resource_quarantined(self, event: ResourceQuarantined) -> None:
        status = self.state.resource(event.resource)
        self._set_resource(replace(status, quarantined=True, rests_until=None, reason=event.reason))
        self._failed(event, status.name, event.reason)

    @_take.register
    def _resource_released(self, event: ResourceReleased) -> None:
        status = self.state.resource(event.resource)
        self._set_resource(replace(status, quarantined=False, failures=0, rests=0, rests_until=None, reason=""))

    def _set_job(self, status: JobStatus) -> None:
        jobs = tuple(status if other.job.id == status.job.id else other for other in self.state.jobs)
        self.state = replace(self.state, jobs=jobs)

    def _set_resource(self, status: ResourceStatus) -> None:
        resources = tuple(status if other.name == status.name else other for other in self.state.resources)
        self.state = replace(self.state, resources=resources)

    def _failed(self, event: CampaignEvent, about: str, text: str) -> None:
        failures = (*self.state.failures, Failure(event.t, about, text))
        self.state = replace(self.state, failures=failures[-KEPT_FAILURES:])
