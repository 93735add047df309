"""In whose name machines that shape are held, and where it is noted how they are given back."""

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
        undo: where every change registers its undo before it is made.
        run_id: in the messages that others see; "": no run.
    """

    undo: UndoStack
    run_id: str = ""

    def lock(self, where: str) -> AbstractContextManager[None]:
        """Lock the machine that is reached by `where`. Raises LabNotReadyError when another process holds it."""
        return resource_lock(shaping_resource(where), run_id=self.run_id)

    def token(self) -> str:
        """Return the name of a new hold: no other hold has it, whatever process and host took it."""
        return f"{self.run_id or 'mplab'}@{platform.node()}:{os.getpid()}:{time.time_ns()}"


def shaping_resource(where: str) -> str:
    """Return the name under which a machine is locked, by how it is reached.

    A command line may be longer than the name of a file: the name has its checksum then.
    """
    return f"shaping {where if len(where) <= _LONGEST_NAME else zlib.crc32(where.encode())}"
