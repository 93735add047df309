"""Show the progress of a run, and at the end its result."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mplab.base.errors import GateError
from mplab.base.files import Closing
from mplab.cli.output import duration, err, out, print_json, table
from mplab.format.runevents import CellFinished, CellRetried, RunEvent
from mplab.run.executing import RunResult, report_page
from mplab.run.progress import ProgressTracker, RunCallbacks, RunProgress

if TYPE_CHECKING:
    from mplab.run.hostside.concluding import RunSummary

if TYPE_CHECKING:
    from mplab.analysis.pipeline import Progress


_STYLES = {"ok": "green", "invalid": "yellow", "failed": "red"}


class RunDisplay(Closing):
    """Display of a run's progress: a live line on a terminal, elsewhere a line for each cell.

    With `quiet`, it prints only a line for each cell that is not ok.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._tracker = ProgressTracker()
        self._progress = self._tracker.progress()
        self._analysis: Progress | None = None
        shown = err.is_terminal and not quiet
        self._live = Live(console=err, get_renderable=self._render, transient=True) if shown else None

    def close(self) -> None:
        """Remove the live line."""
        if self._live:
            self._live.stop()

    def clear(self) -> None:
        """Remove the live line until the next event."""
        self._analysis = None
        if self._live:
            self._live.stop()

    def watch(self, begun: Callable[[Path, int], None] = lambda _directory, _complete: None) -> RunCallbacks:
        """Return the functions that a run must call to update this display.

        `begun` is one of these functions. The run calls it after it has locked the lab, with the run directory and the
        number of complete cells.
        """
        return RunCallbacks(begun=begun, event=self._event, analysis=self._analysing, doing=_doing, warning=_warning)

    def _event(self, event: RunEvent) -> None:
        self._tracker.feed(event)
        self._progress = self._tracker.progress()
        if self._live:
            self._live.start()
        match event:
            case CellFinished() as finished if not self._quiet or finished.outcome != "ok":
                self._cell_line(finished)
            case CellRetried() as retried if not self._quiet:
                err.print(f"  {retried.cell}: attempt {retried.attempt} failed: {retried.reason}", style="yellow")

    def _analysing(self, progress: "Progress") -> None:
        self._analysis = progress
        if self._live:
            self._live.start()

    def _cell_line(self, event: CellFinished) -> None:
        progress = self._progress
        width = len(str(progress.total))
        line = Text(f"[{progress.done:{width}}/{progress.total}] {event.cell}  ")
        line.append(event.outcome, style=_STYLES[event.outcome])
        line.append(f"  {event.duration_s:.1f} s")
        if event.reasons:
            line.append("  " + "; ".join(event.reasons), style="dim")
        if progress.remaining and not self._live:
            line.append(f"  ({duration(progress.eta_s)} left)", style="dim")
        err.print(line)

    def _render(self) -> Group:
        if self._analysis is not None:
            return Group(Text(f"Analysing: {self._analysis.step} {self._analysis.done}/{self._analysis.total}"))
        return _cells(self._progress)


def _cells(progress: RunProgress) -> Group:
    grid = Table.grid(padding=(0, 2))
    elapsed = time.time() - (progress.started or time.time())
    left = f"{duration(progress.eta_s)} left" if progress.remaining else "finishing"
    grid.add_row(
        ProgressBar(total=max(progress.total, 1), completed=progress.done, width=40),
        f"{progress.done}/{progress.total}",
        f"{duration(elapsed)}, {left}",
    )
    idle = "bringing the lab up" if progress.remaining else "taking the lab down"
    doing = f"{progress.current_cell}: {progress.current_step or '…'}" if progress.current_cell else idle
    return Group(grid, Text(doing, style="dim"))


def _doing(text: str) -> None:
    err.print(text, style="dim")


def _warning(text: str) -> None:
    err.print(f"! {text}", style="yellow", soft_wrap=True)


def print_result(result: RunResult, *, report: bool, as_json: bool, quiet: bool) -> None:
    """Print the result of a run: its summary, and the number of cells that were left out.

    Raises:
        typer.Exit: with code 1, if cells that the run reached are not ok.
        GateError: a budget is broken.
    """
    progress = result.progress
    if result.resumed and err.is_terminal and not quiet:
        err.bell()
    if as_json:
        print_json(
            {
                "run": str(result.path),
                "report": str(result.report) if report else None,
                "outcomes": {"ok": progress.ok, "invalid": progress.invalid, "failed": progress.failed},
            }
        )
    elif result.summary is not None and not quiet:
        print_summary(result.summary, result.path)
    if progress.cut and not quiet:
        err.print(f"ended before {progress.left_out} of {progress.total} cells: {progress.cut}", style="yellow")
    if not progress.good:
        raise typer.Exit(1)
    if broken := result.broken_budgets:
        raise GateError(f"{result.path.name}: {len(broken)} of its budgets are broken: {'; '.join(broken)}")


def print_summary(summary: "RunSummary", run: Path) -> None:
    """Print a run's headline metrics, answers, verdicts on claims, warnings, and the path of the report."""
    rows = table("scenario", "link", "metric", "transport", "n", "median", "95 % interval", "gain")
    for row in summary.rows:
        if row.headline:
            rows.add_row(
                row.scenario,
                row.link,
                f"{row.metric} ({row.unit})" + (f", {row.labels}" if row.labels else ""),
                row.transport,
                str(row.n),
                row.median,
                row.interval,
                row.gain,
                style="bold" if row.best else "",
            )
    out.print(rows)
    for answer in summary.answers:
        out.print(f"• {answer}", markup=False)
    if summary.claims:
        out.print("Claims:")
    for claim in summary.claims:
        out.print(f"• {claim}", markup=False)
    for warning in summary.warnings:
        err.print(f"! {warning}", style="yellow", markup=False)
    out.print(f"\nReport: {report_page(run)}", markup=False, soft_wrap=True)
