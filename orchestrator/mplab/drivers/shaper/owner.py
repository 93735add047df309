"""Owner of holds on shaping machines, with the stack that records how to release them."""

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
        undo: stack on which every change registers its undo in advance.
        run_id: in messages to other users; "": no run.
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

    An address that is a long command line could exceed the length of a file name, so its checksum is used instead.
    """
    return f"shaping {where if len(where) <= _LONGEST_NAME else zlib.crc32(where.encode())}"
