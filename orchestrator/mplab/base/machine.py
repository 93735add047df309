"""``Machine`` protocol: a machine that mplab's programs run on, such as a node, a phone or a server."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mplab.base.programs import Program


@dataclass(frozen=True)
class CommandResult:
    """Exit code and output of a command that has ended."""

    exit_code: int
    stdout: str
    stderr: str


class MachineProcess(Protocol):
    """A program that runs on a machine."""

    @property
    def pid(self) -> int:
        """Process id on the machine."""

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM, wait up to `timeout_s`, then send SIGKILL; return the exit code."""


class Machine(Protocol):
    """Machine on which mplab starts programs. Some machines share no files with this host."""

    @property
    def name(self) -> str:
        """Name of the machine in messages."""

    def program(self, program: Program) -> str:
        """Return the name or path by which a program is started on the machine.

        Raises:
            LabNotReadyError: the program is missing there and cannot be installed.
        """

    def spawn(self, argv: Sequence[str], *, log: Path) -> MachineProcess:
        """Start a program on the machine; its output goes to the host file `log`."""

    def outbox(self, target: Path) -> str:
        """Return a path on the machine for a program's output file, which `bring` copies to the host file `target`."""

    def bring(self, target: Path) -> None:
        """Copy the machine's file ``outbox(target)`` to the host file `target`. Do nothing if the file is missing.

        Raises:
            DeviceError: the file on the machine cannot be read.
        """
