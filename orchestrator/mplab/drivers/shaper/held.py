"""Hold the shaping machines of a lab file during a run; every hold is locked, watched and released."""

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import structlog
from pydantic import BaseModel

from mplab.base.files import state_directory
from mplab.base.undo import UndoJournal, UndoStack
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.protocol import HeldMachine
from mplab.userfiles.machines import ShapingMachine

_log = structlog.get_logger(__name__)


def undo_directory() -> Path:
    """Return ``$XDG_STATE_HOME/mplab/undo``; the default of the variable is ``~/.local/state``.

    The folder must survive a reboot of this host, because shaping on other machines does, too.
    """
    return state_directory() / "undo"


@contextlib.contextmanager
def held_machines(
    machines: Iterable[ShapingMachine[BaseModel]], *, run_id: str = "", directory: Path | None = None
) -> Iterator[dict[str, HeldMachine]]:
    """Hold machines during the context and yield them by name; first undo the changes that dead runs have left.

    Args:
        machines: machines that this host can reach.
        run_id: id of the run, shown to other users who want a held machine.
        directory: folder of the undo journal; default: `undo_directory`.

    Raises:
        LabNotReadyError: a machine cannot be held; the machines that were already held are released.
    """
    directory = directory if directory is not None else undo_directory()
    for item in UndoJournal.recover(directory):
        _log.info("left by a dead run", step=item.name, owner_pid=item.owner_pid, failure=item.failure)
    with UndoJournal(directory) as journal, UndoStack(journal) as undo, contextlib.ExitStack() as stack:
        owner = Owner(undo, run_id)
        by_name = {machine.name: machine for machine in machines}
        yield {
            name: stack.enter_context(reachable_driver_of(machine).hold(machine, owner))
            for name, machine in sorted(by_name.items())
        }
