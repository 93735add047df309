"""Showing a run while it goes on, from its events alone."""

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mplab.cli.output import duration, err
from mplab.format.events import Event, EventTail
from mplab.run.progress import ProgressTracker, RunProgress

_STYLES = {"ok": "green", "invalid": "yellow", "failed": "red"}


class RunDisplay:
    """Follows ``events.jsonl`` of a run: a live line on a terminal, a line per cell elsewhere; or bad cells alone."""

    def __init__(self, events_file: Path, *, quiet: bool = False) -> None:
        self._path = events_file
        self._quiet = quiet
        self._tail: EventTail | None = None
        self._tracker = ProgressTracker()
        self._live = Live(console=err, refresh_per_second=4, transient=True) if err.is_terminal and not quiet else None

    def __enter__(self) -> Self:
        """Begin to follow."""
        self._tail = EventTail(self._path)
        if self._live:
            self._live.start()
        self.poll()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Read what is left, and end."""
        self.poll()
        if self._live:
            self._live.stop()
        if self._tail:
            self._tail.close()

    @property
    def progress(self) -> RunProgress:
        """The state after the last event."""
        return self._tracker.progress()

    def poll(self) -> None:
        """Take in the events that have come, and draw."""
        if self._tail is None:
            return
        for event in self._tail.poll():
            self._take(event)
        if self._live:
            self._live.update(self._render(self.progress))

    def _take(self, event: Event) -> None:
        self._tracker.feed(event)
        match event["event"]:
            case "cell_finished" if not self._quiet or event["outcome"] != "ok":
                self._cell_line(event)
            case "cell_retried" if not self._quiet:
                err.print(f"  {event['cell']}: attempt {event['attempt']} failed: {event['reason']}", style="yellow")

    def _cell_line(self, event: Event) -> None:
        progress = self.progress
        width = len(str(progress.total))
        line = Text(f"[{progress.done:{width}}/{progress.total}] {event['cell']}  ")
        line.append(event["outcome"], style=_STYLES[event["outcome"]])
        line.append(f"  {event['duration_s']:.1f} s")
        if event["reasons"]:
            line.append("  " + "; ".join(event["reasons"]), style="dim")
        if progress.remaining and not self._live:
            line.append(f"  ({duration(progress.eta_s)} left)", style="dim")
        err.print(line)

    def _render(self, progress: RunProgress) -> Group:
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
