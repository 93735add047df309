"""Judge an estimate and its interval by the range that a paper claims.

e is the estimate, I its 95 % interval (90 % for equivalence), R the claimed range, M a margin. A range has a direction
if it lies on one side of 0. One number has a tolerance (`tolerance`), and is a range like any other.

| kind | as claimed | same direction | not seen | contradicted |
| --- | --- | --- | --- | --- |
| gain, change, correlation | e in R | I on R's side of 0 | I contains 0 | I on the other side of 0 |
| the same without direction | e in R | never | I touches R | I outside R |
| value, share | e in R | never | I touches R | I outside R |
| no difference, flat trend | e within M | never | I touches M | I outside M |
| crossover | it is in R | it is outside R | no crossover | the opposite crossover |

The first verdict of a row whose condition holds is given. A gain or a change in the claimed direction, or in the other
one, must be at least the smallest effect of the experiment; otherwise it is *not seen*.

A verdict is certain if the interval supports it as a whole. *As claimed*: I lies in R. *Same direction* and *not seen*:
I and R have no number in common. *Contradicted*: always. Without an interval (fewer than three cells), the estimate
takes its place, and no verdict is certain or *contradicted*.
"""

import math
from dataclasses import dataclass
from typing import Literal

from mplab.analysis.metric import in_unit
from mplab.analysis.statistics.effects import Interval
from mplab.format.claim import Claim, ClaimedRange, Verdict
from mplab.format.experiment import SmallestEffect

Null = Literal["no effect", "beyond the margin", "outside the range", "inside the range", "no crossover"]

VERDICTS: tuple[Verdict, ...] = ("contradicted", "not seen", "same direction", "as claimed")
"""The verdicts on measured values, from the worst to the best for the claim."""

ALL_VERDICTS: tuple[Verdict, ...] = (*reversed(VERDICTS), "not measurable here", "no data")
"""In the order of lists."""

TOLERANCE = 0.1
"""Tolerance of one number, relative to it."""

EXTREMES = (0.0, 100.0)
"""Shares, in percent, that have the tolerance `EXTREME_TOLERANCE`."""

EXTREME_TOLERANCE = 1.0
"""Percentage points."""


@dataclass(frozen=True)
class ClaimedBounds:
    """Claimed range with infinite open ends, in the unit of the estimate; ``smallest``: smallest effect of interest."""

    low: float
    high: float
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


def tolerance(claim: Claim, smallest: SmallestEffect) -> float:
    """Return the tolerance of a claim of one number, in the unit of the claim; 0 for other claims.

    It is the largest of 10 % of the number, the smallest effect of interest (gain, no difference, change, value), and
    half of the number's last digit; but at most half of the number, so that the range keeps its sign. For a share of
    0 % or 100 %, it is one percentage point.
    """
    claimed = claim.claimed
    if claimed is None or claimed.number is None or claimed.low is None or claimed.high is None:
        return 0.0
    size, digit = abs(claimed.number), (claimed.high - claimed.low) / 2
    if claim.kind == "share":
        return EXTREME_TOLERANCE if claimed.number in EXTREMES else min(size / 2, max(TOLERANCE * size, digit))
    effect = 0.0
    if claim.kind == "value":
        effect = max(size * smallest.relative_percent / 100, in_unit(smallest.time_s, "s", claimed.unit) or 0.0)
    elif claimed.unit == "%":
        effect = smallest.relative_percent
    widest = max(TOLERANCE * size, effect, digit)
    return min(size / 2, widest) if size > 0 else widest


def bounds_of(claim: Claim, preferences: SmallestEffect, smallest: float = 0.0) -> ClaimedBounds:
    """Return the bounds of the range of a claim, which has one.

    Args:
        claim: the claim.
        preferences: smallest effect of interest of the experiment.
        smallest: that of the estimate, in its unit; the end of a direction without a number.
    """
    claimed = claim.claimed or ClaimedRange()
    if claimed.word is not None:
        up = claimed.word in ("better", "rising")
        return ClaimedBounds(*((smallest, math.inf) if up else (-math.inf, -smallest)), smallest=smallest)
    low, high = claimed.low, claimed.high
    if claimed.number is not None:
        about = tolerance(claim, preferences)
        low, high = claimed.number - about, claimed.number + about
    return ClaimedBounds(-math.inf if low is None else low, math.inf if high is None else high, smallest)


def judge_effect(estimate: float, interval: Interval | None, bounds: ClaimedBounds) -> tuple[Verdict, bool]:
    """Return the verdict on a signed effect, and whether it is certain."""
    side = bounds.direction
    if side == 0:
        return judge_value(estimate, interval, bounds)
    if bounds.low <= estimate <= bounds.high:
        return "as claimed", interval is not None and bounds.holds(interval)
    if interval is None:
        return "same direction" if estimate * side > 0 and abs(estimate) >= bounds.smallest else "not seen", False
    shown = interval.low > 0 or interval.high < 0
    if not shown or abs(estimate) < bounds.smallest:
        return "not seen", not bounds.touches(interval)
    if (interval.low > 0) is (side > 0):
        return "same direction", not bounds.touches(interval)
    return "contradicted", True


def judge_value(estimate: float, interval: Interval | None, bounds: ClaimedBounds) -> tuple[Verdict, bool]:
    """Return the verdict on a value or a share, and whether it is certain."""
    if bounds.low <= estimate <= bounds.high:
        return "as claimed", interval is not None and bounds.holds(interval)
    outside = interval is not None and not bounds.touches(interval)
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
        position: of the crossover; None: the lines do not cross.
        interval: of the position; an end is infinite if resamples have no crossover.
        bounds: claimed positions.
        opposite: the transport is worse at the first point and better at the last one.
    """
    whole = interval is not None and math.isfinite(interval.low) and math.isfinite(interval.high)
    if position is None:
        none = interval is not None and not (math.isfinite(interval.low) or math.isfinite(interval.high))
        return "contradicted" if opposite else "not seen", none and not bounds.touches(interval)  # type: ignore[arg-type]
    if bounds.low <= position <= bounds.high:
        return "as claimed", interval is not None and whole and bounds.holds(interval)
    return "same direction", interval is not None and whole and not bounds.touches(interval)
