"""Collect the content of a campaign's page: the state of the campaign and of its runs on disk."""

import contextlib
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mplab.base.errors import InputError
from mplab.format.campaign import CampaignState, CellCounts, JobStatus, ResourceStatus
from mplab.format.events import read_events
from mplab.format.record import json_of
from mplab.format.runevents import RunEvent
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory

REPORT = "report"
"""Folder of a run directory with its report."""


@dataclass(frozen=True)
class Disk:
    """Free and total space, in bytes, of the disk with the runs."""

    free: int
    total: int


@dataclass(frozen=True)
class Night:
    """Snapshot of a campaign and its runs, for its status page.

    Attributes:
        state: state of the campaign, computed from its event log.
        live: True if a process runs the campaign.
        now: time of the snapshot, Unix seconds.
        progress: job id → progress of the job's current run.
        reports: names of the run directories that have a report.
        trends: names of the experiments that have a trend page in the folder of runs.
        disk: space on the disk with the runs; None: unknown.
        foreign: True if the campaign belongs to another user, so that its process cannot be seen.
    """

    state: CampaignState
    live: bool
    now: float
    progress: Mapping[str, RunProgress] = field(default_factory=dict)
    reports: frozenset[str] = frozenset()
    trends: frozenset[str] = frozenset()
    disk: Disk | None = None
    foreign: bool = False

    @property
    def phase(self) -> str:
        """Return the campaign's phase; if it has not ended and no process runs it, ``killed``, or ``unknown``."""
        at_work = self.state.phase in {"planned", "running", "paused"}
        return self.state.phase if self.live or not at_work else "unknown" if self.foreign else "killed"

    @property
    def stopped(self) -> bool:
        """Return whether the campaign was killed or interrupted, so that `mplab campaign resume` continues it."""
        return self.phase in {"killed", "interrupted"}

    @property
    def can_resume(self) -> bool:
        """Return whether the campaign was killed and still has time left."""
        ends_by = self.state.ends_by
        return self.phase == "killed" and (ends_by is None or ends_by > self.now)

    def cells(self, status: JobStatus) -> CellCounts:
        """Return the current outcomes of a job's cells; before the job's first try, only `total` is not 0."""
        live = self.progress.get(status.job.id)
        if live is not None and live.total:
            return CellCounts(live.total, live.ok, live.invalid, live.failed, live.left_out)
        return status.cells if status.cells.total else CellCounts(total=status.job.cells)

    def all_cells(self) -> CellCounts:
        """Return the outcomes of the cells of all jobs.

        Unfinished cells of a job that was left out count as left out.
        """
        total = CellCounts()
        for status in self.state.jobs:
            cells = self.cells(status)
            left_out = (
                cells.total - cells.ok - cells.invalid - cells.failed if status.state == "left out" else cells.left_out
            )
            total = CellCounts(
                total.total + cells.total,
                total.ok + cells.ok,
                total.invalid + cells.invalid,
                total.failed + cells.failed,
                total.left_out + left_out,
            )
        return total

    def remaining_s(self, status: JobStatus) -> float:
        """Return the estimated remaining duration of a job's run, seconds; 0.0: the job has ended."""
        if status.state not in {"waiting", "running"}:
            return 0.0
        live = self.progress.get(status.job.id)
        if live is not None and live.total:
            return live.eta_s
        if status.state == "running" and status.tries:
            return max(0.0, status.job.estimate_s - (self.now - status.tries[-1].started))
        cells = status.cells
        share = (cells.ok + cells.invalid + cells.failed) / cells.total if cells.total else 0.0
        return status.job.estimate_s * (1 - min(1.0, share))

    @property
    def eta_s(self) -> float | None:
        """Return the estimated time until the busiest resource has done all its jobs and the campaign ends, seconds.

        None: the campaign is paused, has ended, or was killed.
        """
        if self.phase not in {"planned", "running"}:
            return None
        resources = {status.name: status for status in self.state.resources}
        loads: dict[str, float] = {}
        for status in self.state.jobs:
            held = [resources[name] for name in status.job.resources if name in resources]
            if any(resource.quarantined for resource in held):
                continue  # the job will not be run
            for name in status.job.resources or (status.job.id,):
                loads[name] = loads.get(name, 0.0) + self.remaining_s(status)
        return max((load + self._rest_s(resources.get(name)) for name, load in loads.items() if load), default=0.0)

    def _rest_s(self, resource: ResourceStatus | None) -> float:
        until = resource.rests_until if resource is not None else None
        return max(0.0, until - self.now) if until is not None else 0.0

    def to_json(self) -> dict[str, object]:
        """Return the page's content as a JSON object, for programs."""
        eta_s = self.eta_s
        return {
            **json_of(self.state),
            "phase": self.phase,
            "live": self.live,
            "now": round(self.now, 3),
            "eta_s": None if eta_s is None else round(eta_s, 1),
            "disk": None if self.disk is None else {"free": self.disk.free, "total": self.disk.total},
            "at_work": {
                job: {"cell": progress.current_cell, "step": progress.current_step, "done": progress.done}
                for job, progress in self.progress.items()
            },
        }


def read_night(state: CampaignState, runs: Path, *, live: bool, now: float | None = None) -> Night:
    """Collect the content of the status page of a campaign.

    Args:
        state: state of the campaign.
        runs: folder of the runs.
        live: True if a process runs the campaign, that is, holds its lock.
        now: Unix seconds; default: the current time.
    """
    progress = {}
    for status in state.jobs:
        if status.state == "running" and status.run:
            with contextlib.suppress(InputError):  # the run has written no events yet
                progress[status.job.id] = RunProgress.from_events(
                    read_events(RunDirectory(runs / status.run).events_file, RunEvent)
                )
    names = {attempt.run for status in state.jobs for attempt in status.tries}
    experiments = {status.job.experiment for status in state.jobs}
    return Night(
        state=state,
        live=live,
        now=time.time() if now is None else now,
        progress=progress,
        reports=frozenset(name for name in names if (runs / name / REPORT / "index.html").is_file()),
        trends=frozenset(name for name in experiments if (runs / trend_name(name)).is_file()),
        disk=disk_of(runs),
    )


def trend_name(experiment: str) -> str:
    """Return the name of the trend page of an experiment, which ``mplab trend`` writes in the folder of runs."""
    return f"trend-{experiment}.html"


def disk_of(runs: Path) -> Disk | None:
    """Return the space on the disk that holds a folder; None: unknown."""
    with contextlib.suppress(OSError):
        usage = shutil.disk_usage(runs)
        return Disk(usage.free, usage.total)
    return None
