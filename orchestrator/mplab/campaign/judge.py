"""What a try at a job was worth: a pure reading of its exit code and of its run."""

import signal
from dataclasses import dataclass
from typing import Literal

from mplab.base.errors import GateError, InputError, LabNotReadyError
from mplab.base.lock import IN_USE
from mplab.campaign.state import Cells
from mplab.run.progress import RunProgress

Next = Literal["done", "again", "failed"]

_GOOD = (0, GateError.exit_code)


@dataclass(frozen=True)
class Verdict:
    """What follows from a try."""

    next: Next
    reason: str = ""
    """Why it was not good."""
    resources: Literal["good", "bad", "unknown"] = "unknown"
    """What it says of the phone, routers, servers that it had."""
    busy: bool = False
    """Somebody else was there a moment earlier."""


def cells_of(progress: RunProgress | None) -> Cells:
    """Outcomes of a run so far; None: it has none."""
    if progress is None:
        return Cells()
    return Cells(progress.total, progress.ok, progress.invalid, progress.failed, progress.left_out)


def judge(code: int, said: str, before: Cells, after: Cells) -> Verdict:
    """What follows from a try that ended by itself.

    Args:
        code: its exit code; negative: the signal that killed it.
        said: its error, "" without.
        before: outcomes of the run when it began.
        after: when it had ended.
    """
    if code in _GOOD:
        return Verdict("done", resources="good" if after.ok else "unknown")
    if code == InputError.exit_code:
        return Verdict("failed", said or "bad input")
    if code == LabNotReadyError.exit_code and IN_USE in said:
        return Verdict("again", said, busy=True)
    return Verdict("again", _reason(code, said, after), "good" if after.ok > before.ok else "bad")


def _reason(code: int, said: str, after: Cells) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code == LabNotReadyError.exit_code:
        return said or "the lab was not ready"
    bad = after.invalid + after.failed
    if bad and after.total and after.ok + bad + after.left_out == after.total:
        return f"{bad} of {after.total} cells are not ok"
    return said or f"ended with exit code {code}"
