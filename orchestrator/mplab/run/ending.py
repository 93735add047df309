"""Watches whether a run goes on: its time, and how many cells in a row went wrong."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mplab.format.experiment import Ending
from mplab.format.plan import CellSpec, Plan
from mplab.run.blocks import EstimateTracker

ENOUGH = "enough"
"""What the process outside is asked: has the run told enough?"""


@dataclass(frozen=True)
class Cut:
    """A run that ends before its plan is done.

    Attributes:
        reason: a sentence.
        cells: ids of those that are not run.
        interval: what was found of the intervals, when they have ended it.
    """

    reason: str
    cells: list[str]
    interval: Mapping[str, object] | None = None


@dataclass(frozen=True)
class IntervalCheck:
    """What a run has told so far, as `analysis` says.

    Attributes:
        enough: the intervals are narrow.
        text: a sentence.
        numbers: the intervals.
    """

    enough: bool
    text: str
    numbers: Mapping[str, object]


class EndingWatch:
    """What an experiment says about its end, applied to a run.

    Time is looked at between blocks alone, so that what was run is whole blocks; the first block is always begun.

    Args:
        ending: what the experiment says.
        plan: of the whole run.
        todo: the cells that are to be run now, in order.
        look: finds out what the run has told after so many blocks; None: nobody can.
        clock: monotonic, s.
    """

    def __init__(
        self,
        ending: Ending,
        plan: Plan,
        todo: Sequence[CellSpec],
        look: Callable[[int], IntervalCheck] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ending = ending
        self._look = look
        self._todo = list(todo)
        self._begun = datetime.now().astimezone()
        self._clock = clock
        self._began = clock()
        self._deadline = ending.deadline(self._begun)
        self._estimate = EstimateTracker(plan.cells, plan.estimate_s)
        self._block = todo[0].block if todo else 0
        self._failures: list[str] = []

    def finished(self, spec: CellSpec, outcome: str, duration_s: float) -> None:
        """A cell has been run; all its attempts took `duration_s` seconds."""
        self._todo.remove(spec)
        self._estimate.finished(spec.id, duration_s)
        self._failures = [] if outcome == "ok" else [*self._failures, spec.id]

    def before(self, spec: CellSpec, ends_by: datetime | None = None) -> Cut | None:
        """Whether the run ends before this cell; others want it to have ended by `ends_by`."""
        failures = self._ending.failures
        if failures is not None and len(self._failures) >= failures:
            return self._cut(f"{len(self._failures)} cells in a row were not ok (stop: failures: {failures})")
        if spec.block != self._block:
            self._block = spec.block
            deadline = min(filter(None, (self._deadline, ends_by)), default=None)
            return self._enough(spec.block - 1) or self._too_late(spec.block, deadline)
        return None

    def _enough(self, blocks: int) -> Cut | None:
        rule = self._ending.interval
        if rule is None or self._look is None or blocks < rule.after:
            return None
        told = self._look(blocks)
        if not told.enough:
            return None
        return self._cut(f"{told.text}, after {blocks} blocks (stop: interval)", told.numbers)

    def _too_late(self, block: int, deadline: datetime | None) -> Cut | None:
        if deadline is None:
            return None
        needed_s = self._estimate.expected_s([spec for spec in self._todo if spec.block == block])
        now = self._begun + timedelta(seconds=self._clock() - self._began)
        if now + timedelta(seconds=needed_s) <= deadline:
            return None
        left_s = max((deadline - now).total_seconds(), 0.0)
        return self._cut(f"block {block} takes about {needed_s:.0f} s, and {left_s:.0f} s are left (max, until)")

    def _cut(self, reason: str, interval: Mapping[str, object] | None = None) -> Cut:
        return Cut(reason, [spec.id for spec in self._todo], interval)
