"""Render the dashboard's pages as HTML, and the page that a campaign writes to disk."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from mplab.analysis.text import number, quantity
from mplab.base.files import explained, replace
from mplab.base.humanize import clock_time, duration, space
from mplab.campaign.night import Disk, read_night, trend_name
from mplab.dashboard.cells import FinishedCell
from mplab.dashboard.days import last_days, newest_per_experiment, one_day
from mplab.dashboard.night_view import NightView, Part, ResourceCard, bar, card, night_view, percent_of
from mplab.dashboard.search import Found
from mplab.dashboard.watch import CampaignEntry, RunEntry, Snapshot
from mplab.format.campaign import CampaignState, ResourceStatus

HERE = Path(__file__).parent
PAGE_RUNS = 100
"""Number of runs on a page of the list of runs."""
SHOWN_CELLS = 500
_SHOWN_CAMPAIGNS = 10
_SHOWN_FAILURES = 40
_SCARCE = 0.1
"""Free share of the disk below which a warning is shown."""
_BEFORE_TREND = 2
"""Number of runs with a report that a trend needs."""


@dataclass(frozen=True)
class DiskView:
    """Space on the disk of a folder, for templates."""

    folder: str
    text: str
    scarce: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class FailureRow:
    """A failed job, a quarantined resource, or a run that was killed or cannot be read."""

    t: float | None
    about: str
    text: str
    url: str
    log: str = ""


@dataclass(frozen=True)
class ExperimentRow:
    """An experiment with its last run."""

    title: str
    runs: int
    last: RunEntry
    trend: str
    """URL of its trend page; "": too few runs have a report."""


@cache
def environment() -> Environment:
    """Return the Jinja environment; it escapes values, and a missing value is an error."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "duration": duration,
        "bar": bar,
        "number": number,
        "quantity": quantity,
        "run_url": lambda run: f"/runs/{quote(run.name)}",
        "campaign_url": lambda campaign: f"/campaigns/{quote(campaign.name)}",
        "time": _time,
    }
    return made


def _page(template: str, now: float, **content: object) -> str:
    return environment().get_template(template).render({"css": "", "here": "", "now": now, **content})


@pass_context
def _time(context: Context, t: float) -> str:
    """Return a time in words; today's times have no date."""
    return clock_time(t, context["now"])


def overview(snapshot: Snapshot) -> str:
    """Return the first page: running and next experiments, days, resources, failures, experiments, runs."""
    views = _views(snapshot.campaigns)
    at_work = [run for run in snapshot.runs if run.at_work]
    busy = [(entry, view) for entry, view in views if view is not None and view.night.live]
    experiments = newest_per_experiment(snapshot.runs)
    return _page(
        "overview.html.j2",
        snapshot.now,
        here="overview",
        headline=_headline(at_work, len(busy)),
        snapshot=snapshot,
        at_work=at_work,
        campaigns_at_work=busy,
        campaigns=views[:_SHOWN_CAMPAIGNS],
        days=last_days(snapshot),
        resources=[
            card(
                resource.status,
                live=resource.live,
                now=snapshot.now,
                command=_release(resource.status.name, resource.campaigns),
                tries=resource.tries,
            )
            for resource in snapshot.resources
        ]
        + [
            ResourceCard(
                ResourceStatus(phone.serial, quarantined=True, reason=f"{phone.reason} (since {phone.since})"),
                "quarantined",
                "phone in quarantine until it is released",
                f"mplab phone release {shlex.quote(phone.serial)}",
            )
            for phone in snapshot.phones
        ],
        failures=_failures(snapshot),
        experiments=[
            ExperimentRow(runs[0].title, len(runs), runs[0], _trend_url(runs[0].experiment, runs))
            for runs in experiments.values()
        ],
        disks=[_disk(str(folder), disk) for folder, disk in snapshot.disks],
    )


def run_page(
    snapshot: Snapshot, run: RunEntry, cells: list[FinishedCell], logs: Iterable[str], *, compared: str = ""
) -> str:
    """Return the page of a run.

    Args:
        snapshot: state of all folders.
        run: the run.
        cells: its finished cells, the newest first.
        logs: names of the files in its folder ``logs``.
        compared: file name of its comparison with other runs; "": it was not compared.
    """
    own = [other for other in snapshot.runs if other.experiment == run.experiment and not other.problem]
    done = run.cells.ok + run.cells.invalid + run.cells.failed
    return _page(
        "run.html.j2",
        snapshot.now,
        run=run,
        path=shlex.quote(str(run.folder / run.name)),
        percent=percent_of(done, run.cells.total),
        cells=cells,
        shown=SHOWN_CELLS,
        logs=sorted(logs),
        compared=f"/runs/{quote(compared)}" if compared else "",
        trend=_trend_url(run.experiment, own),
    )


def campaign_page(snapshot: Snapshot, campaign: CampaignEntry) -> str:
    """Return the page of a campaign that can be read."""
    view = _view(campaign)
    now = snapshot.now
    release = campaign.path.parent
    tries = {resource.status.name: resource.tries for resource in snapshot.resources}
    return _page(
        "campaign.html.j2",
        now,
        view=view,
        path=shlex.quote(str(campaign.path)),
        resources=[
            card(
                status,
                live=view.night.live,
                now=now,
                command=_release(status.name, release),
                tries=tries.get(status.name, ()),
            )
            for status in view.night.state.resources
        ],
        disk=None,
    )


def runs_page(snapshot: Snapshot, page: int) -> str:
    """Return a page of the list of all runs; pages are numbered from 1, the newest runs first."""
    start = (page - 1) * PAGE_RUNS
    more = len(snapshot.runs) > start + PAGE_RUNS
    return _page(
        "runs.html.j2",
        snapshot.now,
        here="runs",
        title="Runs",
        runs=snapshot.runs[start : start + PAGE_RUNS],
        count=len(snapshot.runs),
        campaigns=[],
        previous=page - 1 if page > 1 else 0,
        next=page + 1 if more else 0,
    )


def day_page(snapshot: Snapshot, when: date) -> str:
    """Return the runs and campaigns of one day."""
    day = one_day(snapshot, when)
    return _page(
        "runs.html.j2",
        snapshot.now,
        title=day.text,
        runs=day.runs,
        count=len(day.runs),
        campaigns=_views(day.campaigns),
        previous=0,
        next=0,
    )


def search_page(snapshot: Snapshot, query: str, found: Found) -> str:
    """Return the form of the search, with results if there is a query."""
    return _page("search.html.j2", snapshot.now, here="search", query=query, found=found)


def names_page(path: str, names: Iterable[str]) -> str:
    """Return the list of the files of a directory of a run; it has a separate origin, as all files of runs."""
    return environment().get_template("names.html.j2").render(path=path, names=names)


def write_page(state: CampaignState, path: Path, *, runs: Path, live: bool = False, now: float | None = None) -> None:
    """Write the page of a campaign atomically, as one file without scripts: a reader sees the old page or the new one.

    Args:
        state: state of the campaign.
        path: path of the page, ``report/index.html`` in the campaign's directory; its folder is created.
        runs: folder of the runs; links to reports are relative to the page.
        live: True if a process runs the campaign.
        now: Unix seconds; default: the current time.

    Raises:
        MplabError: the page cannot be written ("disk full: …").
    """
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    night = read_night(state, runs, live=live, now=now)
    from_page = path.parent.resolve()
    logs = path.parent.parent / "logs"
    names = frozenset(entry.name for entry in logs.iterdir()) if logs.is_dir() else frozenset()
    page = _page(
        "campaign.html.j2",
        night.now,
        css=Markup((HERE / "static" / "dashboard.css").read_text(encoding="utf-8").strip()),  # noqa: S704 - our own file
        view=night_view(night, quote(os.path.relpath(runs.resolve(), from_page)), logs_url="../logs", logs=names),
        resources=[
            card(
                status,
                live=live,
                now=night.now,
                command=_release(status.name, path.parent.parent.parent),
            )
            for status in state.resources
        ],
        disk=None if night.disk is None else _disk(str(runs), night.disk),
    )
    replace(path, page.encode(errors="replace"))


def _views(campaigns: Iterable[CampaignEntry]) -> list[tuple[CampaignEntry, NightView | None]]:
    return [(campaign, None if campaign.night is None else _view(campaign)) for campaign in campaigns]


def _view(campaign: CampaignEntry) -> NightView:
    if campaign.night is None:
        raise ValueError(campaign.problem)
    url = f"/campaigns/{quote(campaign.name)}/logs"
    return night_view(campaign.night, "/runs", logs_url=url, logs=campaign.logs)


def _headline(at_work: list[RunEntry], campaigns: int) -> str:
    if not at_work:
        return "A campaign is running" if campaigns else "Nothing is running"
    done = sum(run.progress.done for run in at_work)
    total = sum(run.progress.total for run in at_work)
    names = at_work[0].title or at_work[0].name if len(at_work) == 1 else f"{len(at_work)} runs"
    return f"{names}: {done} of {total} cells"


def _failures(snapshot: Snapshot) -> list[FailureRow]:
    """Return the latest failures of campaigns and runs, the newest first."""
    rows: dict[tuple[str, str], FailureRow] = {}
    for campaign, view in _views(snapshot.campaigns):
        url = f"/campaigns/{quote(campaign.name)}"
        if view is None:
            rows[campaign.name, ""] = FailureRow(None, campaign.name, campaign.problem, url)
            continue
        logs = {row.status.job.id: row.logs[-1][1] for row in view.jobs if row.logs}
        for failure in reversed(view.night.state.failures):
            row = FailureRow(failure.t, failure.about, failure.text, url, logs.get(failure.about, ""))
            rows.setdefault((f"{campaign.name} {failure.about}", failure.text), row)
    for run in snapshot.runs:
        url = f"/runs/{quote(run.name)}"
        if run.problem:
            rows[run.name, ""] = FailureRow(run.started, run.name, run.problem, url)
        elif run.state == "killed":
            updated = run.progress.updated or run.started
            rows[run.name, ""] = FailureRow(updated, run.name, "killed: no process executes it", url)
        elif run.cells.failed:
            count = f"{run.cells.failed} of {run.cells.total} cells failed"
            rows[run.name, ""] = FailureRow(run.ended or run.progress.updated, run.name, count, url)
    newest_first = sorted(rows.values(), key=lambda row: row.t or 0.0, reverse=True)
    return newest_first[:_SHOWN_FAILURES]


def _release(resource: str, campaigns: Path) -> str:
    return f"mplab campaign release {shlex.quote(resource)} --campaigns {shlex.quote(str(campaigns))}"


def _trend_url(experiment: str, runs: list[RunEntry]) -> str:
    enough = sum(bool(run.headlines) for run in runs) >= _BEFORE_TREND
    return f"/runs/{quote(trend_name(experiment))}" if enough else ""


def _disk(folder: str, disk: Disk) -> DiskView:
    scarce = disk.free < _SCARCE * disk.total
    used = 100 * (disk.total - disk.free) / disk.total if disk.total else 0.0
    text = f"{space(disk.free)} free of {space(disk.total)}"
    return DiskView(folder, text, scarce, (Part("failed" if scarce else "used", 0.0, round(used, 3)),))
