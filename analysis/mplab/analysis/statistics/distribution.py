"""How two distributions differ beyond their middles."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, Interval, Sample

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FEWEST_FOR_INTERVALS = 10
"""With fewer pairs the outer quantiles are interpolated between the last two values: there is nothing to resample."""

_RESAMPLES = 1999


@dataclass(frozen=True)
class QuantileShift:
    """By how much one quantile of a sample is above that of the reference."""

    quantile: float
    value: float
    reference: float
    interval: Interval | None

    @property
    def shift(self) -> float:
        """In the unit of the values."""
        return self.value - self.reference


def kolmogorov_smirnov(sample: Sequence[float], reference: Sequence[float]) -> tuple[float, float] | None:
    """The greatest distance of the two cumulative distributions, and its two-sided p; None below three values.

    Of independent samples: pairing is not used. With ties p is too large, never too small.
    """
    if min(len(sample), len(reference)) < MIN_FOR_INTERVAL:
        return None
    with warnings.catch_warnings():
        # Where the exact p is 1, rounding may pass it by the last digit: scipy then warns and approximates, to 1.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        found = stats.ks_2samp(sample, reference)
    return float(found.statistic), float(found.pvalue)


def quantile_shifts(sample: Sequence[float], reference: Sequence[float], seed: int) -> tuple[QuantileShift, ...]:
    """The shift at each of `QUANTILES` (Doksum 1974): is it the slow tail or everything that got slower?

    ``sample`` and ``reference`` are pairs: the percentile bootstrap of the intervals resamples whole pairs.
    Quantiles by linear interpolation (type 7). None for fewer than three pairs.
    """
    own, other = np.asarray(sample, dtype=float), np.asarray(reference, dtype=float)
    if len(own) < MIN_FOR_INTERVAL:
        return ()
    mine, theirs = np.quantile(own, QUANTILES), np.quantile(other, QUANTILES)
    intervals = _intervals(own, other, seed) if len(own) >= FEWEST_FOR_INTERVALS else [None] * len(QUANTILES)
    return tuple(
        QuantileShift(quantile, float(a), float(b), interval)
        for quantile, a, b, interval in zip(QUANTILES, mine, theirs, intervals, strict=True)
    )


def _intervals(own: Sample, other: Sample, seed: int) -> list[Interval | None]:
    rows = np.random.default_rng(seed).integers(0, len(own), (_RESAMPLES, len(own)))
    shifts = np.quantile(own[rows], QUANTILES, axis=1) - np.quantile(other[rows], QUANTILES, axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(shifts, (tail, 1 - tail), axis=1)
    return [Interval(float(a), float(b)) for a, b in zip(low, high, strict=True)]
