"""Report the progress of a run: compute it from the events, read it from disk, call functions as it changes."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mplab.base.lock import is_locked, sees_locks
from mplab.format.cell import Outcome
from mplab.format.events import read_events
from mplab.format.runevents import (
    CellFinished,
    CellRetried,
    CellStarted,
    CellStep,
    RunContinued,
    RunCut,
    RunEvent,
    RunFinished,
    RunInterrupted,
    RunPaused,
    RunPlanned,
    RunResumed,
    RunStarted,
)
from mplab.run.blocks import EstimateTracker
from mplab.run.run_directory import RunDirectory, lock_name_of

if TYPE_CHECKING:
    from mplab.analysis.pipeline import Progress

RunState = Literal["planned", "running", "paused", "interrupted", "finished"]

RECENT_S = 900
"""A process that cannot be seen counts as alive for this time after its last event, in seconds."""


@dataclass(frozen=True)
class RunProgress:
    """Progress of a run, up to its last event."""

    state: RunState = "planned"
    """State of the run. A killed run stays "running": only its lock shows whether a process still runs it."""
    total: int = 0
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    """Outcomes of the finished cells, by id."""
    skipped: tuple[tuple[str, str], ...] = ()
    """Transports that this lab cannot run: label and reason."""
    cut: str = ""
    """The rule that ended the run before its plan was done; "": none."""
    left_out: int = 0
    """Number of cells that were not run because a rule ended the run."""
    retried: int = 0
    """Number of attempts that were not ok and were repeated."""
    current_cell: str | None = None
    current_step: str | None = None
    attempt: int = 0
    """Number of the current attempt, 1…."""
    started: float | None = None
    """Unix seconds of the first start."""
    updated: float | None = None
    """Unix seconds of the last event."""
    machine: str = ""
    """Machine that runs the cells (`mplab.base.lock.machine`); "": an older version did not record it."""
    eta_s: float = 0.0
    """Time that the cells without outcome still need, in seconds."""

    @property
    def done(self) -> int:
        """Return the number of cells with an outcome."""
        return len(self.outcomes)

    @property
    def ok(self) -> int:
        """Return the number of cells with the outcome ``ok``, which the analysis uses."""
        return self._count("ok")

    @property
    def invalid(self) -> int:
        """Return the number of cells whose measured transport or link was not the requested one."""
        return self._count("invalid")

    @property
    def failed(self) -> int:
        """Return the number of cells that could not be completed."""
        return self._count("failed")

    @property
    def remaining(self) -> int:
        """Return the number of cells without an outcome, the current cell included."""
        return self.total - self.done

    @property
    def good(self) -> bool:
        """Return whether all cells that the run reached are ok; the others were cut by its stop rules."""
        return self.ok + self.left_out == self.total

    @classmethod
    def from_events(cls, events: Iterable[RunEvent]) -> "RunProgress":
        """Return the progress of a run from its events; unknown events change nothing."""
        tracker = ProgressTracker()
        for event in events:
            tracker.feed(event)
        return tracker.progress()

    def _count(self, outcome: Outcome) -> int:
        return sum(value == outcome for value in self.outcomes.values())


class ProgressTracker:
    """Tracks the progress of a run event by event, for a display that is redrawn often."""

    def __init__(self) -> None:
        """Start in the state before the first event."""
        self._progress = RunProgress()
        self._outcomes: dict[str, Outcome] = {}
        self._estimate = EstimateTracker((), 0.0)

    def feed(self, event: RunEvent) -> None:
        """Update the progress with the next event."""
        self._set(updated=event.t)
        match event:
            case RunPlanned():
                self._estimate = EstimateTracker(event.cells, event.estimate_s)
                skipped = tuple((item.transport, item.reason) for item in event.skipped)
                self._set(total=len(event.cells), skipped=skipped, machine=event.machine)
            case RunStarted() | RunResumed():
                self._start(event)
            case CellStarted():
                self._set(current_cell=event.cell, attempt=event.attempt, current_step=None)
                self._reopen(event.cell)
            case CellStep():
                self._set(current_step=event.step)
            case CellRetried():
                self._set(retried=self._progress.retried + 1)
            case CellFinished():
                self._outcomes[event.cell] = event.outcome
                self._estimate.finished(event.cell, event.duration_s)
                self._leave_cell()
            case RunCut():
                self._set(cut=event.reason, left_out=len(event.cells))
            case RunPaused():
                self._set(state="paused")
            case RunContinued():
                self._set(state="running")
            case RunInterrupted():
                self._leave_cell(state="interrupted")
            case RunFinished():
                self._leave_cell(state="finished")

    def progress(self) -> RunProgress:
        """Return the progress up to the last event."""
        return replace(self._progress, outcomes=dict(self._outcomes), eta_s=self._estimate.remaining_s())

    def _start(self, event: RunStarted | RunResumed) -> None:
        if isinstance(event, RunResumed):
            self._set(machine=event.machine)
            for cell in event.again:
                self._reopen(cell)
        started = self._progress.started if self._progress.started is not None else event.t
        self._leave_cell(state="running", cut="", left_out=0, started=started)

    def _reopen(self, cell: str) -> None:
        self._outcomes.pop(cell, None)
        self._estimate.reopened(cell)

    def _leave_cell(self, **changes: Any) -> None:  # noqa: ANN401 - fields of `RunProgress`
        self._set(current_cell=None, current_step=None, attempt=0, **changes)

    def _set(self, **changes: Any) -> None:  # noqa: ANN401 - fields of `RunProgress`
        self._progress = replace(self._progress, **changes)


@dataclass(frozen=True)
class RunStatus:
    """The state of a run, as read from its directory.

    Attributes:
        path: the run directory.
        progress: counts, outcomes and time left; a damaged cell counts as not run.
        state: see `state_of`.
        damaged: cell id → problem, for cells that were complete and no longer are.
    """

    path: Path
    progress: RunProgress
    state: str
    damaged: Mapping[str, str]

    @property
    def can_resume(self) -> bool:
        """Return whether `mplab.run.resume` would run cells: the run was cut, damaged, killed or interrupted.

        A run in the state ``unknown`` can be resumed if this user may write to its directory.
        """
        if self.state == "unknown":
            return os.access(self.path, os.W_OK)
        return bool(self.progress.cut or self.damaged or self.state in {"killed", "interrupted"})


def status(run: Path | str) -> RunStatus:
    """Read the state of a run. Raises InputError if the directory is not a run."""
    directory = RunDirectory.open(Path(run))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    problems = directory.damaged_cells()
    damaged = {
        cell: problems.get(cell, f"{directory.cell_dir(cell)}: no such directory")
        for cell in sorted(progress.outcomes.keys() - directory.complete_cells().keys())
    }
    outcomes = {cell: outcome for cell, outcome in progress.outcomes.items() if cell not in damaged}
    return RunStatus(directory.path, replace(progress, outcomes=outcomes), state_of(progress, directory.path), damaged)


def state_of(progress: RunProgress, path: Path, *, now: float | None = None) -> str:
    """Return the state of the run in the directory `path`: that of its events, ``killed`` or ``unknown``.

    A run that has not ended is alive while a process holds its lock. Without a lock it is ``killed``, if this user and
    this machine would see the lock. If another user or another machine runs it, its events decide: `RECENT_S` seconds
    after the last one, its state is ``unknown``.

    Args:
        progress: progress of the run, from its events.
        path: run directory.
        now: Unix seconds; default: the current time.

    Raises:
        OSError: there is no such directory.
    """
    if progress.state in {"interrupted", "finished"} or is_locked(lock_name_of(path)):
        return progress.state
    if sees_locks(path, progress.machine):
        return "killed"
    return progress.state if is_recent(progress.updated, time.time() if now is None else now) else "unknown"


def is_recent(t: float | None, now: float) -> bool:
    """Return whether less than `RECENT_S` seconds have passed since the last event `t`, Unix seconds; None: none."""
    return t is not None and t > now - RECENT_S


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class RunCallbacks:
    """Functions that a run calls as it progresses, in the thread that started the run.

    They must return soon: they do not delay the cells, but they delay the reaction to Ctrl-C. An exception in one of
    them ends the run.

    Attributes:
        begun: called with the run directory and the number of its complete cells, when the lab is locked.
        event: called with each event of ``events.jsonl``; a resumed run starts with the events of earlier processes.
        analysis: called after each step of the analysis.
        doing: called with a line of text before a step that may take long.
        warning: called with a line of text about a doubt that does not stop the run.
    """

    begun: Callable[[Path, int], None] = _ignore
    event: Callable[[RunEvent], None] = _ignore
    analysis: Callable[["Progress"], None] = _ignore
    doing: Callable[[str], None] = _ignore
    warning: Callable[[str], None] = _ignore


SILENT = RunCallbacks()
"""`RunCallbacks` whose functions do nothing."""
