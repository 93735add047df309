"""The ``Machine`` protocol: something that programs of ours run on – a node of the virtual lab, a phone, a server."""

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
        """Its process id there."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def stop(self, timeout_s: float = 5.0) -> int:
        """Send SIGTERM, wait, then SIGKILL; its exit code."""


class Machine(Protocol):
    """What programs need of the machine that they run on; it may share no file with this host."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def program(self, program: Program) -> str:
        """What calls a program there.

        Raises:
            LabNotReadyError: it is not there and cannot be brought there.
        """

    def spawn(self, argv: Sequence[str], *, log: Path) -> MachineProcess:
        """Start a program there; its output goes to the host file `log`."""

    def outbox(self, target: Path) -> str:
        """Where a program there writes what `bring` makes the host file `target`."""

    def bring(self, target: Path) -> None:
        """Make the host file `target` what its outbox holds now; nothing when there is none.

        Raises:
            DeviceError: it cannot be read.
        """
