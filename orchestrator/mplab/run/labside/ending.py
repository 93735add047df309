"""Apply the stop rules of a run between its cells: time limit, confidence intervals, cells in a row that are not ok."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import JsonValue

from mplab.format.experiment import Ending
from mplab.format.plan import CellSpec, Plan
from mplab.run.blocks import EstimateTracker

ENOUGH = "enough"
"""Question to the host process: are the confidence intervals of the run narrow enough?"""


@dataclass(frozen=True)
class Cut:
    """The decision to end a run before its plan is done.

    Attributes:
        reason: why the run ends, in one sentence.
        cells: ids of the cells that are not run.
        interval: the confidence intervals, if they ended the run; otherwise None.
    """

    reason: str
    cells: list[str]
    interval: dict[str, JsonValue] | None = None


@dataclass(frozen=True)
class IntervalCheck:
    """Result of the analysis: whether the confidence intervals of a run are narrow enough.

    Attributes:
        enough: True if the intervals are narrow enough.
        text: the result in one sentence.
        numbers: the intervals and their relative widths.
    """

    enough: bool
    text: str
    numbers: dict[str, JsonValue]


class EndingWatch:
    """The stop rules of an experiment, applied to a run.

    Time and confidence intervals are checked only between blocks, so that the run ends with a whole block. The first
    block is always started. The rule for consecutive cells that are not ok is checked before each cell.

    Args:
        ending: the experiment's stop rules.
        plan: plan of the whole run.
        todo: the cells to run now, in order.
        look: called with the number of complete blocks, checks the intervals; None: intervals are not checked.
        clock: monotonic clock, s.
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
        """Record that a cell has finished with `outcome`; all its attempts together took `duration_s` seconds."""
        self._todo.remove(spec)
        self._estimate.finished(spec.id, duration_s)
        self._failures = [] if outcome == "ok" else [*self._failures, spec.id]

    def before(self, spec: CellSpec, ends_by: datetime | None = None) -> Cut | None:
        """Return the decision to end the run before the cell `spec`, or None.

        `ends_by` is an additional deadline; the earlier deadline counts.
        """
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
        check = self._look(blocks)
        if not check.enough:
            return None
        return self._cut(f"{check.text}, after {blocks} blocks (stop: interval)", check.numbers)

    def _too_late(self, block: int, deadline: datetime | None) -> Cut | None:
        if deadline is None:
            return None
        needed_s = self._estimate.expected_s([spec for spec in self._todo if spec.block == block])
        now = self._begun + timedelta(seconds=self._clock() - self._began)
        if now + timedelta(seconds=needed_s) <= deadline:
            return None
        left_s = max((deadline - now).total_seconds(), 0.0)
        return self._cut(f"block {block} takes about {needed_s:.0f} s, and {left_s:.0f} s are left (max, until)")

    def _cut(self, reason: str, interval: dict[str, JsonValue] | None = None) -> Cut:
        return Cut(reason, [spec.id for spec in self._todo], interval)
