"""How the programs that mplab configures see files and each other: on this machine, or in images.

Templates and commands of services are written once; what differs between the virtual lab's processes and containers is
asked for here.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mplab.base.programs import UNSHARE, Program

_UNPRIVILEGED = 65534


class Installed(Protocol):
    """Where programs run."""

    def path(self, path: Path) -> str:
        """How the programs see a file of this machine."""

    def program(self, program: Program) -> str:
        """What starts a program. Raises LabNotReadyError when it is not there."""

    def python(self) -> str:
        """What starts Python."""

    def version(self, program: Program) -> str:
        """The version of a program; "" when nobody knows."""

    def unprivileged(self) -> Sequence[str]:
        """What stands before a command that refuses to run as root."""


class ThisMachine:
    """`Installed`: processes of this machine."""

    def path(self, path: Path) -> str:
        """The same."""
        return str(path)

    def program(self, program: Program) -> str:
        """Its absolute path."""
        return str(program.path())

    def python(self) -> str:
        """The one that runs this."""
        return sys.executable

    def version(self, program: Program) -> str:
        """As it tells."""
        return program.version()

    def unprivileged(self) -> Sequence[str]:
        """A user namespace, in which it has another number."""
        ids = (f"--map-user={_UNPRIVILEGED}", f"--map-group={_UNPRIVILEGED}")
        return (self.program(UNSHARE), "--user", *ids, "--")


LOCAL = ThisMachine()
