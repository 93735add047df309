"""`Owner`: the run or user that holds shaping machines, with the undo stack that releases them."""

import os
import platform
import time
import zlib
from contextlib import AbstractContextManager
from dataclasses import dataclass

from mplab.base.lock import resource_lock
from mplab.base.undo import UndoStack

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
        """Lock the machine with the address `where`. Raises LabNotReadyError when another process holds it."""
        return resource_lock(shaping_resource(where), run_id=self.run_id)

    def token(self) -> str:
        """Return the name of a new hold, unique over all processes and hosts."""
        return f"{self.run_id or 'mplab'}@{platform.node()}:{os.getpid()}:{time.time_ns()}"


def shaping_resource(where: str) -> str:
    """Return the name of a machine's lock, made from its address.

    The name becomes a file name. If the address is longer than 60 characters (a long command line), its CRC-32
    replaces it.
    """
    return f"shaping {where if len(where) <= _LONGEST_NAME else zlib.crc32(where.encode())}"
