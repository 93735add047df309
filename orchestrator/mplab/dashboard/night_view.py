"""Prepare the state of a campaign for its page: rows of jobs, cards of resources, bars, times in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from mplab.base.humanize import clock_time, duration
from mplab.campaign.night import REPORT, Night, trend_name
from mplab.format.campaign import CellCounts, JobStatus, ResourceStatus

PHASES = {
    "planned": "not started",
    "running": "running",
    "paused": "paused",
    "interrupted": "interrupted",
    "killed": "killed",
    "finished": "finished",
    "unknown": "unknown",
}
"""Phase of a campaign, or state of a run → its name on pages."""
_JOB_STATES = ("running", "waiting", "done", "failed", "left out")


@dataclass(frozen=True)
class Part:
    """A segment of a bar: its class in the style sheet, its start and width in percent of the bar."""

    kind: str
    start: float
    width: float


@dataclass(frozen=True)
class JobRow:
    """Content of a job's row in the table of jobs."""

    status: JobStatus
    cells: CellCounts
    parts: tuple[Part, ...]
    now: str
    """Current activity of the job, or the reason for its state."""
    took: str
    left: str
    """Time that the job still needs; "": none."""
    report: str
    """URL of its report; "": there is no report."""
    trend: str
    logs: tuple[tuple[str, str], ...]
    """(text, URL) of the logs of its failed tries."""


@dataclass(frozen=True)
class ResourceCard:
    """Content of the card of a phone, router, server or lab."""

    status: ResourceStatus
    kind: str
    """``busy``, ``free``, ``rests``, ``quarantined``: a class of the style sheet."""
    text: str
    command: str = ""
    """Command that releases the resource; "": it is in use or free."""
    tries: tuple[tuple[str, bool, float], ...] = ()
    """See `mplab.dashboard.watch.Resource`."""


@dataclass(frozen=True)
class NightView:
    """A campaign in words, for templates."""

    night: Night
    phase_text: str
    cells: CellCounts
    done: int
    percent: str
    parts: tuple[Part, ...]
    eta: str
    took: str
    jobs: tuple[JobRow, ...]
    job_count: str


def night_view(night: Night, runs_url: str, *, logs_url: str = "", logs: frozenset[str] = frozenset()) -> NightView:
    """Return the content of a campaign's page.

    Args:
        night: state of the campaign.
        runs_url: URL of the folder of runs, without a slash at its end.
        logs_url: URL of the folder of the campaign's logs, without a slash at its end.
        logs: names of the logs that exist.
    """
    cells = night.all_cells()
    done = cells.ok + cells.invalid + cells.failed
    counts = {name: sum(status.state == name for status in night.state.jobs) for name in _JOB_STATES}
    return NightView(
        night=night,
        phase_text=PHASES[night.phase],
        cells=cells,
        done=done,
        percent=percent_of(done, cells.total),
        parts=bar(cells),
        eta=_eta(night),
        took=_took(night),
        jobs=tuple(_row(night, status, runs_url, logs_url, logs) for status in night.state.jobs),
        job_count=", ".join(f"{count} {name}" for name, count in counts.items() if count) or "none",
    )


def percent_of(done: int, total: int) -> str:
    """Return a share as whole percent; a share below 100 % is never rounded up to it."""
    return f"{100 * done // total}" if total else "0"


def bar(cells: CellCounts) -> tuple[Part, ...]:
    """Return the segments of a bar that shows cells by outcome; cells without outcome have no segment."""
    if not cells.total:
        return ()
    counts = {"ok": cells.ok, "invalid": cells.invalid, "failed": cells.failed, "left-out": cells.left_out}
    parts, start = [], 0.0
    for kind, count in counts.items():
        width = 100 * count / cells.total
        if count:
            parts.append(Part(kind, round(start, 3), round(width, 3)))
        start += width
    return tuple(parts)


def card(
    status: ResourceStatus,
    *,
    live: bool,
    now: float,
    command: str = "",
    tries: Sequence[tuple[str, bool, float]] = (),
) -> ResourceCard:
    """Return the card of a resource.

    Args:
        status: state of the resource in its newest campaign.
        live: True if a process runs that campaign.
        now: Unix seconds.
        command: command that releases the resource.
        tries: outcomes of its latest tries.
    """
    shown = tuple(tries)
    if status.quarantined:
        return ResourceCard(status, "quarantined", "in quarantine until it is released", command, shown)
    if status.rests_until is not None and status.rests_until > now:
        text = f"rests until {clock_time(status.rests_until, now)}"
        return ResourceCard(status, "rests", text, command, shown)
    if status.job and live:
        return ResourceCard(status, "busy", f"used by {status.job}", tries=shown)
    return ResourceCard(status, "free", "free", tries=shown)


def _row(night: Night, status: JobStatus, runs_url: str, logs_url: str, logs: frozenset[str]) -> JobRow:
    cells = night.cells(status)
    run = next((attempt.run for attempt in reversed(status.tries) if attempt.run in night.reports), "")
    experiment = status.job.experiment
    names = [
        (f"log of try {attempt.number}", f"{status.job.id}-{attempt.number}.log")
        for attempt in status.tries
        if attempt.reason
    ]
    names += [("log of the comparison", f"{status.job.id}-compare.log")] if status.worse else []
    return JobRow(
        status=status,
        cells=cells,
        parts=bar(cells),
        now=_now(night, status),
        took=_job_took(night, status),
        left=duration(left) if (left := night.remaining_s(status)) else "",
        report=f"{runs_url}/{quote(run)}/{REPORT}/index.html" if run else "",
        trend=f"{runs_url}/{quote(trend_name(experiment))}" if experiment in night.trends else "",
        logs=tuple((text, f"{logs_url}/{quote(name)}") for text, name in names if name in logs),
    )


def _now(night: Night, status: JobStatus) -> str:
    live = night.progress.get(status.job.id)
    if status.state == "running" and live is not None and live.current_cell:
        return f"{live.current_cell}: {live.current_step or 'starting'}"
    if status.reason:
        return status.reason
    last = status.tries[-1].reason if status.tries else ""
    return f"tries again after: {last}" if last and status.state == "waiting" else ""


def _job_took(night: Night, status: JobStatus) -> str:
    spent = sum((attempt.ended or _last_sign(night, status)) - attempt.started for attempt in status.tries)
    return duration(max(0.0, spent)) if status.tries else ""


def _last_sign(night: Night, status: JobStatus) -> float:
    """Return the time, Unix seconds, at which a job's unfinished try last showed that it was running."""
    if night.live and status.state == "running":
        return night.now
    progress = night.progress.get(status.job.id)
    return (progress.updated if progress is not None else None) or night.state.updated or night.now


def _eta(night: Night) -> str:
    eta_s = night.eta_s
    if eta_s is None or not night.state.jobs or night.phase == "planned":
        return ""
    ends_by = night.state.ends_by
    if ends_by is not None and night.now + eta_s > ends_by:
        until = clock_time(ends_by, night.now)
        return f"about {duration(eta_s)} of work left, more than fits until {until}: the rest is left out"
    return f"about {duration(eta_s)} left, until {clock_time(night.now + eta_s, night.now)}"


def _took(night: Night) -> str:
    if night.state.started is None:
        return ""
    end = night.now if night.live else night.state.updated or night.now
    return duration(max(0.0, end - night.state.started))
