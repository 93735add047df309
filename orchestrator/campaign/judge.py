"""What a try at a job was worth: a pure reading of its exit code and of its run."""

import signal
from dataclasses import dataclass
from typing import Literal

from orchestrator.campaign.state import Cells
from orchestrator.errors import GateError, InputError, LabNotReadyError
from orchestrator.record.progress import RunProgress

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
    resources: Literal["good", "bad"] = "good" if after.ok > before.ok else "bad"
    bad = after.invalid + after.failed
    if code == LabNotReadyError.exit_code:
        return Verdict("again", said or "the lab was not ready", resources)
    if code < 0:
        return Verdict("again", f"killed by {signal.Signals(-code).name}", resources)
    if after.total and after.ok + bad + after.left_out == after.total and bad:
        return Verdict("again", f"{bad} of {after.total} cells are not ok", resources)
    return Verdict("again", said or f"ended with exit code {code}", resources)
