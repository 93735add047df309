"""``mplab pause`` and ``mplab continue``."""

from mplab.base.errors import InputError
from mplab.base.lock import is_locked
from mplab.cli.options import RunArgument, RunsOption, find_run
from mplab.cli.output import err
from mplab.format.events import read_events
from mplab.format.runevents import ContinueAsked, PauseAsked, RunEvent
from mplab.run.orders import order
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RUNS, RunDirectory


def pause(run_name: RunArgument = "", runs: RunsOption = RUNS) -> None:
    """Let a run wait after the cell that it is at, with its lab up, until 'mplab continue'."""
    run_id = _order(run_name, runs, PauseAsked())
    err.print(f"{run_id} waits after this cell; it goes on with: mplab continue {run_id}", soft_wrap=True)


def go_on(run_name: RunArgument = "", runs: RunsOption = RUNS) -> None:
    """Let a run go on that 'mplab pause' made wait."""
    err.print(f"{_order(run_name, runs, ContinueAsked())} goes on", soft_wrap=True)


def _order(name: str, runs: RunsOption, event: RunEvent) -> str:
    directory = RunDirectory.open(find_run(name, runs))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    if progress.state == "finished" and not progress.remaining:
        raise InputError(f"{directory.run_id} is complete: all of its {progress.total} cells have been run")
    if not is_locked(directory.lock_name):
        raise InputError(f"{directory.run_id} is not running: 'mplab resume' goes on with a run that was interrupted")
    order(directory.events_file, event)
    return directory.run_id
