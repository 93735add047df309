"""Compare the distributions of two samples: their largest distance, and the shifts of their quantiles."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, Interval, Sample

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)
FEWEST_FOR_INTERVALS = 10
"""Minimum number of pairs for intervals; with fewer, the outer quantiles only interpolate between two values."""

_RESAMPLES = 1999


@dataclass(frozen=True)
class QuantileShift:
    """The same quantile of a sample and of its reference; ``interval`` is the 95 % interval of `shift`."""

    quantile: float
    value: float
    reference: float
    interval: Interval | None

    @property
    def shift(self) -> float:
        """Return ``value - reference``, in the unit of the values."""
        return self.value - self.reference


def kolmogorov_smirnov(sample: Sequence[float], reference: Sequence[float]) -> tuple[float, float] | None:
    """Return (largest distance between the two cumulative distributions, its two-sided p).

    Return None when a sample has fewer than three values.

    The test treats the samples as independent and ignores pairing. With ties, it is conservative: p is too large.
    """
    if min(len(sample), len(reference)) < MIN_FOR_INTERVAL:
        return None
    with warnings.catch_warnings():
        # When the exact p is 1, rounding can exceed it; scipy then warns, and approximates it as 1.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        test = scipy.stats.ks_2samp(sample, reference)
    return float(test.statistic), float(test.pvalue)


def quantile_shifts(sample: Sequence[float], reference: Sequence[float], seed: int) -> tuple[QuantileShift, ...]:
    """Return the shift at each of `QUANTILES` (Doksum 1974).

    The shifts show whether all values became slower, or only the slow tail.


    ``sample`` and ``reference`` are pairs: the percentile bootstrap of the intervals resamples whole pairs.
    Quantiles use linear interpolation (type 7). The result is empty for fewer than three pairs; intervals need
    `FEWEST_FOR_INTERVALS` pairs.
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
