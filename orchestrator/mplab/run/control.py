"""Control a run of another process by requests in its events: pause between two cells, continue, end by a deadline."""

import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from mplab.base.errors import InputError
from mplab.base.files import Closing
from mplab.base.lock import is_locked
from mplab.format.events import Event, EventLog, EventTail, read_events
from mplab.format.runevents import (
    ContinueAsked,
    DeadlineSet,
    PauseAsked,
    RunContinued,
    RunEvent,
    RunPaused,
    RunResumed,
)
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory

_POLL_S = 0.5


class RunControl(Closing):
    """Follows the requests in a run's own events: ``pause_asked``, ``continue_asked``, ``deadline_set``.

    A resumed run ignores the requests that were sent before it was resumed.

    Args:
        events: the run's log; this process writes to it too.
        sleep: waits for a number of seconds.
    """

    def __init__(self, events: EventLog, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._events = events
        self._sleep = sleep
        self._tail = EventTail(events.path, RunEvent)
        self._paused = False
        self.ends_by: datetime | None = None
        """Time by which the run must have ended; None: no deadline."""
        self._read()

    def close(self) -> None:
        """Stop reading events."""
        self._tail.close()

    def wait_while_paused(self) -> None:
        """If the run is paused, wait until it is continued. Raises MplabError if an event cannot be written."""
        if not self._waits():
            return
        self._events.append(RunPaused())
        while self._waits():
            self._sleep(_POLL_S)
        self._events.append(RunContinued())

    def _waits(self) -> bool:
        self._read()
        return self._paused

    def _read(self) -> None:
        for event in self._tail.poll():
            match event:
                case PauseAsked():
                    self._paused = True
                case ContinueAsked():
                    self._paused = False
                case DeadlineSet():
                    self.ends_by = datetime.fromtimestamp(event.ends_by).astimezone()
                case RunResumed():
                    self._paused, self.ends_by = False, None


def request(events_file: Path, event: Event) -> None:
    """Append a request to the events of a run or campaign that another process is writing.

    Raises:
        MplabError: the event cannot be written.
    """
    with EventLog(events_file, beside=True) as events:
        events.append(event)


def pause(run: Path | str) -> None:
    """Make a run wait after its current cell, with its lab up, until `go_on`.

    Raises:
        InputError: not a run directory, or the run is not running.
        MplabError: the run directory cannot be written.
    """
    request(_running(run).events_file, PauseAsked())


def go_on(run: Path | str) -> None:
    """Let a paused run continue. Raises the errors of `pause`."""
    request(_running(run).events_file, ContinueAsked())


def _running(run: Path | str) -> RunDirectory:
    """Return the directory of a run that a process is executing. Raises InputError if there is no such process."""
    directory = RunDirectory.open(Path(run))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    if progress.state == "finished" and not progress.remaining:
        raise InputError(f"{directory.run_id} is complete: all of its {progress.total} cells have been run")
    if not is_locked(directory.lock_name):
        raise InputError(f"{directory.run_id} is not running: 'mplab resume' continues a run that was interrupted")
    return directory
