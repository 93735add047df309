"""Show a campaign: as a table on a terminal, and as a page; both are updated while the campaign runs."""

import contextlib
import time
from datetime import datetime
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mplab.base.errors import MplabError
from mplab.campaign.directory import CampaignDirectory
from mplab.campaign.night import Night, read_night
from mplab.cli.output import duration, err, table
from mplab.dashboard.render import write_page
from mplab.format.campaign import CampaignState, JobStatus, ResourceStatus

_STYLES = {"running": "bold", "done": "green", "failed": "red", "left out": "yellow"}
_LAST = 5
_REFRESH_S = 1.0
_PAGE_S = 5.0


class CampaignDisplay:
    """Display of a running campaign: a line for each failure and, on a terminal, a live table.

    Args:
        directory: directory of the campaign.
        page: True: also write the campaign's status page.
    """

    def __init__(self, directory: CampaignDirectory, *, page: bool) -> None:
        self._directory = directory
        self._runs = directory.runs
        self._live = Live(console=err, auto_refresh=False, transient=True) if err.is_terminal else None
        self._page = page
        self._told = time.time()
        self._drawn = self._written = 0.0

    def __enter__(self) -> Self:
        """Start the live table on a terminal, and return the display."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remove the live table, and write the status page with the campaign's final state."""
        if self._live:
            self._live.stop()
        self._write(self._directory.read_state(), live=False)

    def show(self, state: CampaignState) -> None:
        """Print new failures; update the live table and the status page, unless they were updated very recently."""
        now = time.monotonic()
        for failure in state.failures:
            if failure.t > self._told:
                self._told = failure.t
                line = f"{_clock(failure.t)}  {failure.about}: {failure.text}"
                err.print(line, style="yellow", markup=False, soft_wrap=True)
        if self._live and now - self._drawn > _REFRESH_S:
            self._drawn = now
            self._live.update(campaign_table(read_night(state, self._runs, live=True)), refresh=True)
        if now - self._written > _PAGE_S:
            self._written = now
            self._write(state, live=True)

    def _write(self, state: CampaignState, *, live: bool) -> None:
        if self._page:
            with contextlib.suppress(MplabError):  # the campaign itself handles a full disk
                write_page(state, self._directory.page, runs=self._runs, live=live)


def campaign_table(night: Night) -> RenderableType:
    """Return a campaign's table for a terminal: its jobs, phones and other resources, and its last failures."""
    state = night.state
    jobs = table("job", "state", "cells", "tries", "")
    for status in state.jobs:
        cells = night.cells(status)
        bad = cells.invalid + cells.failed
        count = f"{cells.ok + bad}/{cells.total}" + (f", {bad} not ok" if bad else "")
        row = (status.job.id, status.state, count, str(len(status.tries)), _note(night, status))
        jobs.add_row(*row, style=_STYLES.get(status.state, ""))
    left = f", about {duration(night.eta_s)} left" if night.eta_s else ""
    parts: list[RenderableType] = [Text(f"{state.title}: {night.phase}{left}\n", style="bold"), jobs]
    if noted := [resource for resource in state.resources if _state_of(resource)]:
        parts.append(_resources(noted))
    if state.disk_low:
        parts.append(Text(f"\n{state.disk_low}", style="red"))
    if state.failures:
        parts.append(_failures(state))
    return Group(*parts)


def _note(night: Night, status: JobStatus) -> str:
    progress = night.progress.get(status.job.id)
    if progress is not None and progress.current_cell:
        return f"{progress.current_cell}: {progress.current_step or '…'}"
    return status.reason or (status.compared if status.worse else "") or status.run


def _state_of(resource: ResourceStatus) -> str:
    if resource.quarantined:
        return "in quarantine"
    if resource.rests_until is not None and resource.rests_until > time.time():
        return f"rests for {duration(resource.rests_until - time.time())}"
    return f"used by {resource.job}" if resource.job else ""


def _resources(found: list[ResourceStatus]) -> Table:
    rows = table("", "", "", title="\nWhat they need")
    for resource in found:
        rows.add_row(resource.name, _state_of(resource), resource.reason)
    return rows


def _failures(state: CampaignState) -> Table:
    rows = table("", "", "", title="\nLast failures")
    for failure in state.failures[-_LAST:]:
        rows.add_row(_clock(failure.t), failure.about, failure.text)
    return rows


def _clock(t: float) -> str:
    return datetime.fromtimestamp(t).astimezone().strftime("%H:%M:%S")
