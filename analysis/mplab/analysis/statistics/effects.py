"""Compute intervals, effect sizes and the gain of multipath from lists of numbers."""

import hashlib
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

CONFIDENCE = 0.95
RESAMPLES = 9999
MIN_FOR_INTERVAL = 3
"""Minimum number of values for an interval or a test; fewer give too few different resamples for a bootstrap."""

MAGNITUDES = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
"""Bounds of |Cliff's delta| (Romano et al. 2006); above the last: large."""

Better = Literal["lower", "higher", "neither"]
Sample: TypeAlias = npt.NDArray[np.float64]
Statistic: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class Interval:
    """A range of numbers, in most cases a 95 % confidence interval."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        """Return whether ``value`` lies in the interval, ends included."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Description:
    """Descriptive statistics of a sample; ``sd`` needs two values, ``interval`` three."""

    n: int
    median: float
    q1: float
    q3: float
    mean: float
    sd: float | None
    minimum: float
    maximum: float
    interval: Interval | None


def describe(values: Sequence[float], seed: int) -> Description:
    """Return the descriptive statistics of at least one value; quartiles by linear interpolation, sd with n - 1."""
    sample = np.asarray(values, dtype=float)
    q1, median, q3 = (float(q) for q in np.quantile(sample, (0.25, 0.5, 0.75)))
    return Description(
        n=len(sample),
        median=median,
        q1=q1,
        q3=q3,
        mean=math.fsum(values) / len(values),
        sd=float(np.std(sample, ddof=1)) if len(sample) > 1 else None,
        minimum=float(sample.min()),
        maximum=float(sample.max()),
        interval=median_interval(values, seed),
    )


def median_interval(values: Sequence[float], seed: int) -> Interval | None:
    """Return the 95 % percentile bootstrap interval of the median; None for fewer than three values."""
    if len(values) < MIN_FOR_INTERVAL:
        return None
    interval = _bootstrap((values,), np.median, seed)
    if interval is None:
        return None
    median = float(np.median(values))  # interpolation can exceed an end by rounding
    return Interval(min(max(interval.low, min(values)), median), max(min(interval.high, max(values)), median))


def gain(single_paths: Sequence[float], multipath: float, better: Better) -> float | None:
    """Return G of han2015 §4: the gain of multipath over the best single path, as a fraction of the best single path.

    With the values P of the single paths and M of multipath, G is (min(P) - M) / min(P) if lower is better, and
    (M - max(P)) / max(P) if higher is better. Return None without a single path, when the best one is not positive, or
    when ``better`` is ``neither``.
    """
    if better == "neither" or not single_paths:
        return None
    best = min(single_paths) if better == "lower" else max(single_paths)
    if best <= 0:
        return None
    return (best - multipath) / best if better == "lower" else (multipath - best) / best


def gain_interval(
    single_paths: Sequence[Sequence[float]], multipath: Sequence[float], better: Better, seed: int
) -> Interval | None:
    """Return the 95 % percentile bootstrap interval of the gain G (`gain`), computed from medians.

    Each resample selects its best single path. Return None when ``better`` is ``neither``, a sample has fewer than
    three values, or a resample has no G.
    """
    samples = (*single_paths, multipath)
    if better == "neither" or not single_paths or min(map(len, samples)) < MIN_FOR_INTERVAL:
        return None
    pick = np.min if better == "lower" else np.max
    sign = 1.0 if better == "lower" else -1.0

    def statistic(*resamples: Sample, axis: int) -> Sample:
        *singles, multi = (np.median(resample, axis=axis) for resample in resamples)
        best = pick(np.stack(singles), axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains: Sample = sign * (best - multi) / np.where(best > 0, best, np.nan)
        return gains

    return _bootstrap(samples, statistic, seed)


def cliffs_delta(sample: Sequence[float], baseline: Sequence[float]) -> float:
    """Return P(x > y) - P(x < y) for x of ``sample``, y of ``baseline``: -1 (all smaller) … 1 (all greater)."""
    difference = np.sign(np.subtract.outer(np.asarray(sample), np.asarray(baseline)))
    return float(difference.mean())


def magnitude(delta: float) -> str:
    """Return the word for the size of a Cliff's delta: ``negligible``, ``small``, ``medium`` or ``large``."""
    return next((word for bound, word in MAGNITUDES if abs(delta) < bound), "large")


def mann_whitney_p(sample: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the two-sided p of the Mann-Whitney U test; None when a sample has fewer than three values."""
    if min(len(sample), len(baseline)) < MIN_FOR_INTERVAL:
        return None
    return float(scipy.stats.mannwhitneyu(sample, baseline, alternative="two-sided").pvalue)


def seed_of(run_seed: int, *key: object) -> int:
    """Return a seed for a statistic from the run's seed and its key, independent of the order of computation."""
    text = repr((run_seed, *(str(part) for part in key)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def _bootstrap(samples: Sequence[Sequence[float]], statistic: Statistic, seed: int) -> Interval | None:
    """Return the percentile bootstrap interval of a statistic of the samples, or None when an end is not finite.

    That happens when the statistic is undefined for a resample; scipy's warning is suppressed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
        result = scipy.stats.bootstrap(
            tuple(np.asarray(sample, dtype=float) for sample in samples),
            statistic,
            confidence_level=CONFIDENCE,
            n_resamples=RESAMPLES,
            method="percentile",
            vectorized=True,
            rng=np.random.default_rng(seed),
        )
    low, high = (float(end) for end in result.confidence_interval)
    return Interval(low, high) if math.isfinite(low) and math.isfinite(high) else None
