"""Paths and commands as mplab's programs see them: on this machine, or inside container images.

Templates and commands of services are written once. `Installed` supplies the parts that differ between processes of
the virtual lab and containers.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from mplab.base.programs import UNSHARE, Program

_UNPRIVILEGED = 65534


class Installed(Protocol):
    """Provider of the paths and commands that are valid where mplab's programs run: this machine or a container."""

    def path(self, path: Path) -> str:
        """Return the path by which the programs open a file of this machine."""

    def program(self, program: Program) -> str:
        """Return the name or path by which a program is started. Raises LabNotReadyError: it is not installed."""

    def python(self) -> str:
        """Return the name or path by which Python is started."""

    def version(self, program: Program) -> str:
        """Return the version of a program; "" when it is unknown."""

    def unprivileged(self) -> Sequence[str]:
        """Return the command prefix that makes a program run without root, for programs that refuse to run as root."""


class ThisMachine:
    """`Installed` for programs that run as processes of this machine."""

    def path(self, path: Path) -> str:
        """Return `path` as text: the programs see the files of this machine under the same paths."""
        return str(path)

    def program(self, program: Program) -> str:
        """Return the absolute path of a program. Raises LabNotReadyError: it is not installed."""
        return str(program.path())

    def python(self) -> str:
        """Return the path of the Python interpreter that runs this process."""
        return sys.executable

    def version(self, program: Program) -> str:
        """Return the version that the program prints, or that of its Debian package."""
        return program.version()

    def unprivileged(self) -> Sequence[str]:
        """Return the command prefix that makes a program run in a user namespace with an unprivileged user id."""
        ids = (f"--map-user={_UNPRIVILEGED}", f"--map-group={_UNPRIVILEGED}")
        return (self.program(UNSHARE), "--user", *ids, "--")


LOCAL = ThisMachine()
