"""Error classes of mplab.

::

    MplabError                  exit code
    ├── InputError              2   an experiment, link or lab file is wrong
    ├── LabNotReadyError        3   something the lab needs is missing
    ├── CellError               1   one cell could not be completed
    │   ├── DeviceError             a phone, router or proxy did not do what was requested
    │   ├── StepError               a step of a scenario failed (an element missing, a browser gone)
    │   └── InvalidCellError        link, transport or load were not as requested: the cell is invalid
    │       └── CheckError              a scenario cannot measure under the present conditions
    ├── GateError               4   a budget or regression gate failed
    └── InterruptedRunError   130   SIGINT or SIGTERM: stopped cleanly, can be resumed

Every message names the device or file, the requested value, the value found, and the next step.
"""

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import ClassVar

_LAST_CHARACTERS = 500
HAS_PLACE = re.compile(r"[^\s:][^\n:]*:\d+: ")
"""Start of a message about a line of a file: ``FILE:LINE: …``."""


class MplabError(Exception):
    """Base class of the errors that mplab reports with a message instead of a traceback."""

    exit_code: ClassVar[int] = 1


class InputError(MplabError):
    """An experiment, link or lab file is wrong. Nothing has been changed yet."""

    exit_code = 2


class NoBaselineError(InputError):
    """No earlier run exists to compare a run with."""

    PHRASE: ClassVar[str] = "no analysed run of"
    """Part of the message by which a campaign recognizes this error."""


class LabNotReadyError(MplabError):
    """The lab cannot run this experiment. The message names the missing part and how to get it."""

    exit_code = 3


class CellError(MplabError):
    """One cell could not be completed. The run continues."""


class DeviceError(CellError):
    """A phone, router or proxy did not do what was requested.

    Args:
        device: name of the device, first word of the message.
        message: requested value and value found.
        command: command line; empty when there was no command.
        exit_code_found: exit code of the command.
        stderr: error output of the command.
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
    """A step of a scenario failed: an element is missing, or the browser has ended."""


class InvalidCellError(CellError):
    """A cell was not measured under the requested conditions (link, transport, host load), so it is invalid.

    Args:
        reasons: why the cell is invalid, one sentence for each reason.
    """

    def __init__(self, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = list(reasons)


class CheckError(InvalidCellError):
    """A scenario checked its preconditions and found that it cannot measure under the present conditions."""


class GateError(MplabError):
    """A result does not meet a budget, or is worse than in earlier runs."""

    exit_code = 4


class InterruptedRunError(MplabError):
    """SIGINT or SIGTERM stopped the run; ``mplab resume`` continues it."""

    exit_code = 130


def reported_error(exit_code: int, message: str) -> MplabError:
    """Return the error that another process of mplab reported with its exit code and message."""
    kinds = {kind.exit_code: kind for kind in (MplabError, InputError, LabNotReadyError)}
    return kinds.get(exit_code, MplabError)(message.removeprefix("mplab: "))


def check_each(checks: Iterable[Callable[[], object]]) -> None:
    """Run every check, also after one has failed.

    Raises:
        DeviceError: at least one check raised it. The message joins those of all failed checks.
    """
    errors: list[DeviceError] = []
    for check in checks:
        try:
            check()
        except DeviceError as error:
            errors.append(error)
    if len(errors) == 1:
        raise errors[0]
    if errors:
        first, *others = errors
        text = str(first).removeprefix(f"{first.device}: ").rstrip()
        raise DeviceError(first.device, "; ".join([text, *(str(error).rstrip() for error in others)]))


def last_words(log: Path) -> str:
    """Return the last 500 characters of a program's log, for a message; "" when the log cannot be read."""
    with contextlib.suppress(OSError):
        return log.read_text(errors="replace")[-_LAST_CHARACTERS:]
    return ""
