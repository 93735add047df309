"""Render the status page of a campaign as HTML."""

import os
from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mplab.base.files import explained, replace
from mplab.base.humanize import clock_time, duration, space
from mplab.campaign.page.night import REPORT, Night, read_night, trend_name
from mplab.format.campaign import CampaignState, CellCounts, JobStatus, ResourceStatus

REFRESH_S = 10
"""Interval, in seconds, at which the page of a running campaign reloads itself."""

_HERE = Path(__file__).parent
_SCARCE = 0.1
"""Free share of the disk below which a warning is shown."""
_PHASES = {
    "planned": "not begun",
    "running": "at work",
    "paused": "paused",
    "interrupted": "stopped",
    "killed": "not at work: it was killed",
    "finished": "finished",
}


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


@dataclass(frozen=True)
class ResourceCard:
    """Content of the card of a phone, router, server or lab."""

    status: ResourceStatus
    kind: str
    """``busy``, ``free``, ``rests``, ``quarantined``: a class of the style sheet."""
    text: str


def render(night: Night, runs_url: str) -> str:
    """Return the status page of a campaign as HTML.

    Args:
        night: content of the page.
        runs_url: URL of the folder of runs, relative to the page, without a slash at its end.
    """
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["time"] = lambda t: clock_time(t, night.now)
    state = night.state
    cells = night.all_cells()
    completed = cells.ok + cells.invalid + cells.failed
    return environment.get_template("page.html.j2").render(
        css=_css(),
        refresh_s=REFRESH_S if night.live else 0,
        state=state,
        phase=night.phase,
        phase_text=_PHASES[night.phase],
        cells=cells,
        done=completed,
        percent=f"{100 * completed / cells.total:.0f}" if cells.total else "0",
        parts=bar(cells),
        eta=_eta(night),
        took=_took(night),
        jobs=[_row(night, status, runs_url) for status in state.jobs],
        job_count={name: sum(status.state == name for status in state.jobs) for name in _JOB_STATES},
        resources=[_card(night, status) for status in state.resources],
        compared=[status for status in state.jobs if status.compared],
        failures=tuple(reversed(state.failures)),
        disk=night.disk,
        disk_scarce=night.disk is not None and night.disk.free < _SCARCE * night.disk.total,
        disk_free=space(night.disk.free) if night.disk is not None else "",
        disk_total=space(night.disk.total) if night.disk is not None else "",
        disk_parts=_disk_parts(night),
        now=night.now,
    )


def write_page(state: CampaignState, path: Path, *, runs: Path, live: bool = False, now: float | None = None) -> None:
    """Write the status page of a campaign atomically: a reader sees the old page or the new one.

    Args:
        state: state of the campaign.
        path: path of the page, ``report/index.html`` in the campaign's directory; its folder is created.
        runs: folder of the runs; links to reports are relative to the page.
        live: True if a process runs the campaign; the page then reloads itself.
        now: Unix seconds; default: the current time.

    Raises:
        MplabError: the page cannot be written ("disk full: …").
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    runs_url = quote(os.path.relpath(runs.resolve(), path.parent.resolve()))
    replace(path, render(read_night(state, runs, live=live, now=now), runs_url).encode(errors="replace"))


def style_hash() -> str:
    """Return the hash of the page's style sheet as a source for Content-Security-Policy: ``'sha256-…'``."""
    digest = b64encode(sha256(f"\n{_css()}\n".encode()).digest()).decode()
    return f"'sha256-{digest}'"


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


_JOB_STATES = ("running", "waiting", "done", "failed", "left out")


def _css() -> Markup:
    return Markup((_HERE / "page.css").read_text(encoding="utf-8").strip())  # noqa: S704 - our own file


def _row(night: Night, status: JobStatus, runs_url: str) -> JobRow:
    cells = night.cells(status)
    run = next((attempt.run for attempt in reversed(status.tries) if attempt.run in night.reports), "")
    experiment = status.job.experiment
    return JobRow(
        status=status,
        cells=cells,
        parts=bar(cells),
        now=_now(night, status),
        took=_job_took(night, status),
        left=duration(left) if (left := night.remaining_s(status)) else "",
        report=f"{runs_url}/{quote(run)}/{REPORT}/index.html" if run else "",
        trend=f"{runs_url}/{quote(trend_name(experiment))}" if experiment in night.trends else "",
    )


def _now(night: Night, status: JobStatus) -> str:
    live = night.progress.get(status.job.id)
    if status.state == "running" and live is not None and live.current_cell:
        return f"{live.current_cell}: {live.current_step or 'begins'}"
    if status.reason:
        return status.reason
    last = status.tries[-1].reason if status.tries else ""
    return f"again, after: {last}" if last and status.state == "waiting" else ""


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
    return f"about {duration(eta_s)} left, until {clock_time(night.now + eta_s, night.now)}"


def _took(night: Night) -> str:
    if night.state.started is None:
        return ""
    end = night.now if night.live else night.state.updated or night.now
    return duration(max(0.0, end - night.state.started))


def _card(night: Night, status: ResourceStatus) -> ResourceCard:
    if status.quarantined:
        return ResourceCard(status, "quarantined", "in quarantine until it is released")
    if status.rests_until is not None and status.rests_until > night.now:
        return ResourceCard(status, "rests", f"rests until {clock_time(status.rests_until, night.now)}")
    if status.job and night.live:
        return ResourceCard(status, "busy", status.job)
    return ResourceCard(status, "free", "free")


def _disk_parts(night: Night) -> tuple[Part, ...]:
    if night.disk is None or not night.disk.total:
        return ()
    used = 100 * (night.disk.total - night.disk.free) / night.disk.total
    return (Part("failed" if used > 100 * (1 - _SCARCE) else "used", 0.0, round(used, 3)),)
