"""The errors of mplab.

::

    MplabError                  exit code
    ├── InputError              2   an experiment, link or lab file is wrong
    ├── LabNotReadyError        3   something the lab needs is missing
    ├── CellError               1   one cell could not be completed
    │   ├── DeviceError             a phone, router or proxy did not do what it was told
    │   ├── StepError               a step of a scenario failed (an element missing, a browser gone)
    │   └── InvalidCellError        the treatment is not the requested one: the cell is invalid
    │       └── CheckError              a scenario cannot measure here now
    ├── GateError               4   a budget or regression gate failed
    └── InterruptedRunError   130   SIGINT or SIGTERM: stopped cleanly, can be resumed

Every message names the device or file, what was asked, what was found, and what to do next.
"""

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

_LAST_CHARACTERS = 500
HAS_PLACE = re.compile(r"[^\s:][^\n:]*:\d+: ")
"""Begins a message about a line of a file: ``FILE:LINE: …``."""


class MplabError(Exception):
    """Any error that mplab explains to its user instead of showing a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(MplabError):
    """An experiment, link or lab file is wrong: nothing has been touched."""

    exit_code = 2


class NoBaselineError(InputError):
    """There is no earlier run to compare a run with."""

    PHRASE: ClassVar[str] = "no analysed run of"
    """Part of the message, by which a campaign knows it."""


class LabNotReadyError(MplabError):
    """The lab cannot run this experiment; the message says what is missing and how to get it."""

    exit_code = 3


class CellError(MplabError):
    """One cell could not be completed; the run goes on."""


class DeviceError(CellError):
    """A phone, router or proxy did not do what it was told.

    Args:
        device: its name, first word of the message.
        message: what was asked, what was found.
        command: the command line, when there was one.
        exit_code_found: its exit code.
        stderr: its error output.
    """

    def __init__(
        self,
        device: str,
        message: str,
        *,
        command: tuple[str, ...] = (),
        exit_code_found: int | None = None,
        stderr: str = "",
    ) -> None:
        text = f"{device}: {message}"
        if command:
            text += f" (command: {' '.join(command)}"
            text += f"; exit code {exit_code_found})" if exit_code_found is not None else ")"
        if stderr.strip():
            text += f": {stderr.strip()[-500:]}"
        super().__init__(text)
        self.device = device
        self.command = command
        self.exit_code_found = exit_code_found
        self.stderr = stderr


class StepError(CellError):
    """A step of a scenario failed: an element that is not there, a browser that is gone."""


class InvalidCellError(CellError):
    """The treatment is not the requested one: the cell is invalid.

    Args:
        reasons: one sentence each.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = list(reasons)


class CheckError(InvalidCellError):
    """A scenario's own check found that what it measures cannot be measured here now."""


class GateError(MplabError):
    """A budget or regression gate failed."""

    exit_code = 4


class InterruptedRunError(MplabError):
    """The run was stopped by SIGINT or SIGTERM; ``mplab resume`` goes on with it."""

    exit_code = 130


def check_each(checks: Iterable[Callable[[], object]]) -> None:
    """Run every check. Raise one DeviceError that names everything that any of them found."""
    found: list[DeviceError] = []
    for check in checks:
        try:
            check()
        except DeviceError as error:
            found.append(error)
    if len(found) == 1:
        raise found[0]
    if found:
        first, *others = found
        text = str(first).removeprefix(f"{first.device}: ").rstrip()
        raise DeviceError(first.device, "; ".join([text, *(str(error).rstrip() for error in others)]))


def last_words(log: Path) -> str:
    """The end of a program's log, for a message; "" when there is none."""
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace")[-_LAST_CHARACTERS:]
    return ""
