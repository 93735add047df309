"""Showing a campaign: as a table, and while it goes on."""

import time
from datetime import datetime
from types import TracebackType
from typing import Self

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from orchestrator.campaign.directory import CampaignDirectory
from orchestrator.campaign.state import CampaignState, JobStatus, ResourceStatus
from orchestrator.cli.output import duration, err, table
from orchestrator.record.events import read_events
from orchestrator.record.progress import RunProgress

_STYLES = {"running": "bold", "done": "green", "failed": "red", "left out": "yellow"}
_LAST = 5
_REFRESH_S = 1.0


class CampaignDisplay:
    """A table that changes on a terminal; elsewhere what goes wrong, a line each, and nothing else.

    Args:
        directory: of the campaign.
    """

    def __init__(self, directory: CampaignDirectory) -> None:
        self._directory = directory
        self._live = Live(console=err, auto_refresh=False, transient=True) if err.is_terminal else None
        self._shown = 0.0
        self._drawn = 0.0

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""
        if self._live:
            self._live.stop()

    def show(self, state: CampaignState) -> None:
        """Draw it anew; not more often than somebody can see."""
        for failure in state.failures:
            if failure.t > self._shown:
                self._shown = failure.t
                at = datetime.fromtimestamp(failure.t).astimezone().strftime("%H:%M:%S")
                err.print(f"{at}  {failure.about}: {failure.text}", style="yellow", markup=False, soft_wrap=True)
        if self._live and time.monotonic() - self._drawn > _REFRESH_S:
            self._drawn = time.monotonic()
            self._live.update(campaign_table(self._directory, state, state.phase), refresh=True)


def progress_of(directory: CampaignDirectory, status: JobStatus) -> RunProgress | None:
    """How far a job's run is; None: it has none yet."""
    events = directory.runs / status.run / "events.jsonl"
    return RunProgress.from_events(read_events(events)) if status.run and events.is_file() else None


def left_s(directory: CampaignDirectory, state: CampaignState) -> float:
    """Time that a campaign still needs, seconds: as long as what is needed longest."""
    needed: dict[str, float] = {}
    for status in state.jobs:
        if status.state in {"waiting", "running"}:
            progress = progress_of(directory, status)
            expected = progress.eta_s if progress is not None and progress.total else status.job.estimate_s
            for name in status.job.resources:
                needed[name] = needed.get(name, 0.0) + expected
    return max(needed.values(), default=0.0)


def campaign_table(directory: CampaignDirectory, state: CampaignState, phase: str) -> RenderableType:
    """Jobs, phones and what else they need, the last failures."""
    jobs = table("job", "state", "cells", "tries", "")
    for status in state.jobs:
        progress = progress_of(directory, status)
        done, bad = (progress.done, progress.invalid + progress.failed) if progress is not None else (0, 0)
        cells = f"{done}/{status.job.cells}" + (f", {bad} not ok" if bad else "")
        jobs.add_row(
            status.job.id,
            status.state,
            cells,
            str(len(status.tries)),
            _note(status, progress),
            style=_STYLES.get(status.state, ""),
        )
    left = f", about {duration(left_s(directory, state))} left" if phase in {"running", "paused"} else ""
    parts: list[RenderableType] = [Text(f"{state.title}: {phase}{left}\n", style="bold"), jobs]
    if noted := [resource for resource in state.resources if _state_of(resource)]:
        parts.append(_resources(noted))
    if state.disk_low:
        parts.append(Text(f"\n{state.disk_low}", style="red"))
    if state.failures:
        parts.append(_failures(state))
    return Group(*parts)


def _note(status: JobStatus, progress: RunProgress | None) -> str:
    if status.state == "running" and progress is not None and progress.current_cell:
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
        at = datetime.fromtimestamp(failure.t).astimezone().strftime("%H:%M:%S")
        rows.add_row(at, failure.about, failure.text)
    return rows
