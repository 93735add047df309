"""Pause a run of another process, or let it continue."""

from pathlib import Path

from mplab.base.errors import InputError
from mplab.base.lock import is_locked
from mplab.format.events import read_events
from mplab.format.runevents import ContinueAsked, PauseAsked, RunEvent
from mplab.run.orders import order
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory


def pause(run: Path | str) -> None:
    """Make a run wait after its current cell, with its lab up, until `go_on`.

    Raises:
        InputError: not a run directory, or the run is not running.
        MplabError: the run directory cannot be written.
    """
    order(_running(run).events_file, PauseAsked())


def go_on(run: Path | str) -> None:
    """Let a paused run continue. Raises the errors of `pause`."""
    order(_running(run).events_file, ContinueAsked())


def _running(run: Path | str) -> RunDirectory:
    """Return the directory of a run that a process is executing. Raises InputError if there is no such process."""
    directory = RunDirectory.open(Path(run))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    if progress.state == "finished" and not progress.remaining:
        raise InputError(f"{directory.run_id} is complete: all of its {progress.total} cells have been run")
    if not is_locked(directory.lock_name):
        raise InputError(f"{directory.run_id} is not running: 'mplab resume' goes on with a run that was interrupted")
    return directory
