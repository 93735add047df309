"""Show that the difference of two transports is smaller than the smallest effect of interest: an equivalence test."""

import math

import numpy as np

from mplab.analysis.statistics.effects import Interval, Sample
from mplab.analysis.statistics.paired import hodges_lehmann, signed_rank_interval

CONFIDENCE = 0.9
"""Two one-sided tests at the level of 5 % are an interval of 90 % that lies in the zone (Schuirmann 1987)."""

FEWEST_PAIRS = 5
"""Minimum number of pairs of the 90 % signed-rank interval."""


def equivalence_interval(diffs: Sample) -> Interval | None:
    """Return the shifts that neither one-sided signed-rank test rejects at 5 %; None for fewer than five pairs.

    The shift of the paired differences ``diffs`` is shown to be smaller than a smallest effect if this interval lies
    within ± the effect: two one-sided tests (Schuirmann 1987; Lakens 2017), by ranks (Hollander & Wolfe 1999, §3.3).
    """
    return signed_rank_interval(diffs, CONFIDENCE)


def equivalent(interval: Interval | None, smallest: float) -> bool:
    """Return whether the interval of the differences lies within ± ``smallest``, in the same unit."""
    return interval is not None and -smallest <= interval.low and interval.high <= smallest


def needed_for_equivalence(diffs: Sample, smallest: float) -> int | None:
    """Return about how many pairs show that the shift is smaller than ``smallest``.

    The observed shift is assumed to be the true one, and the half-width of the interval to shrink with the root of the
    number of pairs. Return None if the observed shift is not smaller, or there is no interval to extrapolate from.
    """
    interval = equivalence_interval(diffs)
    room = smallest - abs(hodges_lehmann(diffs))
    if interval is None or room <= 0:
        return None
    half = float(np.max(np.abs(np.array([interval.low, interval.high]) - hodges_lehmann(diffs))))
    return max(FEWEST_PAIRS, math.ceil(len(diffs) * (half / room) ** 2))
