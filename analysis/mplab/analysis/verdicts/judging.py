"""Judge an estimate and its interval by the range that a paper claims.

e is the estimate, I its 95 % interval (90 % for equivalence), R the claimed range, M a margin. A range has a direction
if it lies on one side of 0.

| kind | as claimed | same direction | not seen | contradicted |
| --- | --- | --- | --- | --- |
| gain, change, correlation | e in R | I on R's side of 0 | I contains 0 | I on the other side of 0 |
| the same without direction | e in R | never | I touches R | I outside R |
| value | e in R | never | I touches R | I outside R |
| share | e in R | e and R on one side of 50 % | I touches R | I outside R |
| no difference, flat trend | e within M | never | I touches M | I outside M |
| crossover | it is in R | it is outside R | there is none | there is the opposite one |

The first verdict of a row whose condition holds is given. A gain or a change in the claimed direction, or in the other
one, must be at least the smallest effect of the experiment; otherwise it is *not seen*. One number
instead of two ends is met if I contains a number that rounds to it; for kinds with a direction, I must also exclude 0.

A verdict is certain if the interval supports it as a whole. *As claimed*: I lies in R; for one number, I is no wider
than the number. *Same direction* and *not seen*: I and R have no number in common. *Contradicted*: always. Without an
interval (fewer than three cells) no verdict is certain.
"""

import math
from dataclasses import dataclass
from typing import Literal

from mplab.analysis.statistics.effects import Interval
from mplab.format.claim import ClaimedRange

Verdict = Literal["as claimed", "same direction", "not seen", "contradicted", "not measurable here", "no data"]
Null = Literal["no effect", "beyond the margin", "inside the range", "no crossover"]

VERDICTS: tuple[Verdict, ...] = ("contradicted", "not seen", "same direction", "as claimed")
"""The verdicts on measured values, from the worst to the best for the claim."""

DECIDED_BY_P: dict[Null, tuple[Verdict, ...]] = {
    "no effect": ("as claimed", "same direction", "contradicted"),
    "beyond the margin": ("as claimed",),
    "inside the range": ("same direction", "contradicted"),
    "no crossover": ("as claimed", "same direction"),
}
"""Null hypothesis of a claim's test → verdicts that are certain only if the test rejects it."""

HALF = 50.0
"""Percent: a larger share is that of the majority."""


@dataclass(frozen=True)
class ClaimedBounds:
    """Claimed range with infinite open ends, in the unit of the estimate.

    ``number``: the only number of the paper. ``smallest``: smallest effect of interest.
    """

    low: float
    high: float
    number: float | None = None
    smallest: float = 0.0

    @property
    def direction(self) -> int:
        """Return 1 if the range is above 0, -1 if it is below 0, and 0 if it contains or touches 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0

    def touches(self, interval: Interval) -> bool:
        """Return whether the range and an interval have a number in common."""
        return interval.low <= self.high and self.low <= interval.high

    def holds(self, interval: Interval) -> bool:
        """Return whether an interval lies in the range."""
        return self.low <= interval.low and interval.high <= self.high


def bounds_of(claimed: ClaimedRange, smallest: float, factor: float = 1.0) -> ClaimedBounds:
    """Return the bounds of a claimed range.

    Args:
        claimed: range of a claim.
        smallest: smallest effect of interest, in the unit of the estimate; the end of a direction without a number.
        factor: converts the unit of ``claimed`` to that of the estimate.
    """
    if claimed.word is not None:
        up = claimed.word in ("better", "rising")
        return ClaimedBounds(*((smallest, math.inf) if up else (-math.inf, -smallest)), smallest=smallest)
    low = -math.inf if claimed.low is None else claimed.low * factor
    high = math.inf if claimed.high is None else claimed.high * factor
    return ClaimedBounds(low, high, None if claimed.number is None else claimed.number * factor, smallest)


def judge_effect(estimate: float, interval: Interval | None, bounds: ClaimedBounds) -> tuple[Verdict, bool]:
    """Return the verdict on a signed effect, and whether it is certain."""
    side = bounds.direction
    if side == 0:
        return judge_value(estimate, interval, bounds)
    met = _met(estimate, interval, bounds)
    if interval is None:
        return "as claimed" if met else "same direction" if estimate * side > 0 else "not seen", False
    shown = interval.low > 0 or interval.high < 0
    if met and (shown or bounds.number is None):
        return "as claimed", _supports(interval, bounds)
    if not shown or abs(estimate) < bounds.smallest:
        return "not seen", not bounds.touches(interval)
    if (interval.low > 0) is (side > 0):
        return "same direction", not bounds.touches(interval)
    return "contradicted", True


def judge_value(
    estimate: float, interval: Interval | None, bounds: ClaimedBounds, *, share: bool = False
) -> tuple[Verdict, bool]:
    """Return the verdict on a value or, with ``share``, on a share in percent, and whether it is certain."""
    if _met(estimate, interval, bounds):
        return "as claimed", interval is not None and _supports(interval, bounds)
    outside = interval is not None and not bounds.touches(interval)
    if share and any(_on_side(estimate, above) and _on_side_of(bounds, above) for above in (True, False)):
        above = estimate > HALF
        one_side = interval is not None and (interval.low > HALF if above else interval.high < HALF)
        return "same direction", outside and one_side
    beyond = max(bounds.low - estimate, estimate - bounds.high) >= bounds.smallest
    return ("contradicted", True) if outside and beyond else ("not seen", outside)


def judge_equivalence(estimate: float, interval: Interval | None, bounds: ClaimedBounds) -> tuple[Verdict, bool]:
    """Return the verdict on a difference that is claimed to be within a margin; ``interval`` has 90 %."""
    if bounds.low <= estimate <= bounds.high:
        return "as claimed", interval is not None and bounds.holds(interval)
    if interval is not None and not bounds.touches(interval):
        return "contradicted", True
    return "not seen", False


def judge_crossover(
    position: float | None, interval: Interval | None, bounds: ClaimedBounds, *, opposite: bool
) -> tuple[Verdict, bool]:
    """Return the verdict on the position at which a transport stops being better, and whether it is certain.

    Args:
        position: of the crossover; None: there is none.
        interval: of the position; an end is infinite if resamples have no crossover.
        bounds: claimed positions.
        opposite: the transport is worse at the first point and better at the last one.
    """
    whole = interval is not None and math.isfinite(interval.low) and math.isfinite(interval.high)
    if position is None:
        none = interval is not None and not (math.isfinite(interval.low) or math.isfinite(interval.high))
        return "contradicted" if opposite else "not seen", none and not bounds.touches(interval)  # type: ignore[arg-type]
    if _met(position, interval, bounds):
        return "as claimed", interval is not None and whole and _supports(interval, bounds)
    return "same direction", interval is not None and whole and not bounds.touches(interval)


def _met(estimate: float, interval: Interval | None, bounds: ClaimedBounds) -> bool:
    if bounds.number is not None and interval is not None:
        return bounds.touches(interval)
    return bounds.low <= estimate <= bounds.high


def _supports(interval: Interval, bounds: ClaimedBounds) -> bool:
    if bounds.number is not None:
        return interval.high - interval.low <= abs(bounds.number)
    return bounds.holds(interval)


def _on_side(value: float, above: bool) -> bool:
    return value > HALF if above else value < HALF


def _on_side_of(bounds: ClaimedBounds, above: bool) -> bool:
    return bounds.low >= HALF if above else bounds.high <= HALF
