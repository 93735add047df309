"""Judge a try at a job, and the resources that it used, by exit code, error message and cell outcomes of its run."""

import signal
from dataclasses import dataclass
from typing import Literal

from mplab.base.errors import GateError, InputError, LabNotReadyError
from mplab.base.lock import IN_USE
from mplab.format.campaign import CellCounts, ResourceStatus
from mplab.run.progress import RunProgress

Next = Literal["done", "again", "failed"]

_GOOD = (0, GateError.exit_code)


@dataclass(frozen=True)
class Verdict:
    """Consequences of a try for its job and for the resources that it used (phone, routers, servers)."""

    next: Next
    """Next state of the job: ``done``; ``again``: another try, up to the limit of tries; ``failed``: no further try."""
    reason: str = ""
    """Why the try was not good; "": it was."""
    resources: Literal["good", "bad", "unknown"] = "unknown"
    """Verdict on the phone, routers and servers that the try used."""
    busy: bool = False
    """True if the try did not run because another process held a resource."""


def cells_of(progress: RunProgress | None) -> CellCounts:
    """Return the current number of a run's cells by outcome. Without a run (`progress` None), all are 0."""
    if progress is None:
        return CellCounts()
    return CellCounts(progress.total, progress.ok, progress.invalid, progress.failed, progress.left_out)


def judge(code: int, message: str, before: CellCounts, after: CellCounts) -> Verdict:
    """Return the verdict on a try that ended by itself.

    Args:
        code: exit code of the try; negative: the signal that killed it.
        message: error message of the try; "": it has none.
        before: outcomes of the run's cells when the try began.
        after: outcomes of the run's cells when the try ended.
    """
    if code in _GOOD:
        return Verdict("done", resources="good" if after.ok else "unknown")
    if code == InputError.exit_code:
        return Verdict("failed", message or "bad input")
    if code == LabNotReadyError.exit_code and IN_USE in message:
        return Verdict("again", message, busy=True)
    return Verdict("again", _reason(code, message, after), _of_resources(before, after))


def _of_resources(before: CellCounts, after: CellCounts) -> Literal["good", "bad", "unknown"]:
    """Return what a try that was not good says about its resources.

    It is unknown after a repetition of cells that are the exception in their run: the cause can be the experiment.
    """
    if after.ok > before.ok:
        return "good"
    return "unknown" if _whole(before) and before.ok > before.invalid + before.failed else "bad"


def _whole(cells: CellCounts) -> bool:
    """Return whether all cells of a run have been tried."""
    return 0 < cells.total == cells.ok + cells.invalid + cells.failed + cells.left_out


def _reason(code: int, message: str, after: CellCounts) -> str:
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code == LabNotReadyError.exit_code:
        return message or "the lab was not ready"
    bad = after.invalid + after.failed
    if bad and _whole(after):
        return f"{bad} of {after.total} cells are not ok"
    return message or f"ended with exit code {code}"


@dataclass(frozen=True)
class Breaker:
    """Circuit breaker: decides when a resource (phone, router, server or lab) that fails is no longer used.

    Attributes:
        failures: number of consecutive bad tries after which the resource rests.
        rest_s: duration of a rest, seconds; the next try decides whether it rests again.
        rests: number of consecutive rests after which the resource is in quarantine.
    """

    failures: int
    rest_s: float
    rests: int

    def judge(self, status: ResourceStatus) -> Literal["use", "rest", "quarantine"]:
        """Return how the campaign treats a resource after a failed try: use, rest or quarantine.

        `status` is the resource's state; it already counts this failure.
        """
        if status.failures < self.failures:
            return "use"
        return "rest" if status.rests < self.rests else "quarantine"

    @staticmethod
    def usable(status: ResourceStatus, now: float) -> bool:
        """Return whether a job may use the resource at `now`, Unix seconds.

        It may if no job holds the resource, and the resource neither rests nor is quarantined.
        """
        rests = status.rests_until is not None and now < status.rests_until
        return not (status.job or status.quarantined or rests)
