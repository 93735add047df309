"""Hold shaping machines, so that no other process can shape with them.

`Owner` is the run or user that holds machines. `held_machines` holds machines of a lab file during a context.
"""

import contextlib
import os
import platform
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import structlog
from pydantic import BaseModel

from mplab.base.files import state_directory
from mplab.base.lock import resource_lock
from mplab.base.undo import UndoJournal, UndoStack
from mplab.drivers.shaper.driver import reachable_driver_of
from mplab.drivers.shaper.protocol import HeldMachine
from mplab.userfiles.labs.machines import ShapingMachine

_LONGEST_NAME = 60


@dataclass(frozen=True)
class Owner:
    """A run, or a user at the command line, that holds machines.

    Attributes:
        undo: stack on which each change registers its undo before the change is made.
        run_id: id of the run, shown to other users who want a held machine; "": no run.
    """

    undo: UndoStack
    run_id: str = ""

    def lock(self, where: str) -> AbstractContextManager[None]:
        """Return a context that locks the machine with the address `where`.

        Entering raises LabNotReadyError when another process has locked the machine.
        """
        return resource_lock(shaping_resource(where), run_id=self.run_id)

    def token(self) -> str:
        """Return a name for a new hold on a machine, unique over all processes and hosts: ``run@host:pid:time``."""
        return f"{self.run_id or 'mplab'}@{platform.node()}:{os.getpid()}:{time.time_ns()}"


def shaping_resource(where: str) -> str:
    """Return the name of a machine's lock, made from the machine's address `where`.

    The name becomes a file name. If the address is longer than 60 characters (a long command line), its CRC-32
    replaces it.
    """
    return f"shaping {where if len(where) <= _LONGEST_NAME else zlib.crc32(where.encode())}"


_log = structlog.get_logger(__name__)


def undo_directory() -> Path:
    """Return the folder of undo journals: ``$XDG_STATE_HOME/mplab/undo``, by default ``~/.local/state/mplab/undo``.

    The folder must survive a reboot of this host, because the shaping on other machines survives the reboot, too.
    """
    return state_directory() / "undo"


@contextlib.contextmanager
def held_machines(
    machines: Iterable[ShapingMachine[BaseModel]], *, run_id: str = "", directory: Path | None = None
) -> Iterator[dict[str, HeldMachine]]:
    """Hold machines during the context; yield them by name. First undo changes that killed runs have left on machines.

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
