"""Compute the shift of paired differences, with its interval and its test.

A block is one repetition of every combination of scenario, link and transport. In a block, all transports met the same
packet losses at nearly the same time, so shared effects cancel out in the differences of their values. Most functions
take these differences, one per block.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np
import scipy

from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, Interval, Sample, Statistic

MOST_EXACT = 50
"""Maximum number of pairs without ties for the exact null distribution of the signed ranks, as in scipy and R."""

MOST_SIGN_FLIPS = 13
"""Maximum number of pairs with ties for which all 2ⁿ signs are enumerated."""

BCA_RESAMPLES = 1999
"""Number of bootstrap resamples; each needs the averages of all pairs of differences, about n² / 2 numbers."""

RANDOM_SIGNS = 9999
"""Number of random signs of `step_down` for more than `MOST_SIGN_FLIPS` blocks."""

_KEPT_DIGITS = 9
_MOST_LOG = 100.0
_BATCH = 250
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Significance:
    """A two-sided p-value and the name of its test; ``least_p`` is the smallest p that this number of values allows."""

    p: float
    name: str
    least_p: float


def differences(sample: Sequence[float], reference: Sequence[float]) -> Sample:
    """Return ``sample - reference``, pair by pair, rounded so that rounding noise does not hide zeros and ties."""
    first, second = np.asarray(sample, dtype=float), np.asarray(reference, dtype=float)
    scale = max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))
    digits = _KEPT_DIGITS - math.ceil(math.log10(scale)) if scale > 0 else 0
    rounded: Sample = np.round(first - second, digits)
    return rounded


def hodges_lehmann(diffs: Sample) -> float:
    """Return the estimated shift: the median of the Walsh averages (d_i + d_j) / 2, i ≤ j (Hodges & Lehmann 1963)."""
    return float(np.median(_averages(diffs)))


def signed_rank_interval(diffs: Sample, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the shifts that the signed-rank test does not reject (Tukey 1949; Hollander & Wolfe 1999, §3.3).

    The interval covers the true shift with at least ``confidence`` if the differences are symmetric. It is exact up to
    `MOST_EXACT` pairs, and uses the normal approximation beyond. Return None for too few pairs (95 %: fewer than six;
    90 %: fewer than five), when even the whole range of their Walsh averages covers the shift with less.
    """
    rank = _rejected_ranks(len(diffs), confidence)
    if rank < 1:
        return None
    walsh = np.sort(_averages(diffs))
    return Interval(float(walsh[rank - 1]), float(walsh[-rank]))


def bca_interval(diffs: Sample, seed: int) -> Interval | None:
    """Return the bias-corrected and accelerated bootstrap interval of `hodges_lehmann` (Efron & Tibshirani 1993 §14.3).

    Return None for fewer than three pairs, and for more than `MOST_EXACT`, where `signed_rank_interval` suffices.
    If all differences are equal, both ends of the interval are that difference.
    """
    if not MIN_FOR_INTERVAL <= len(diffs) <= MOST_EXACT:
        return None
    return bootstrap_bca(diffs, _hodges_lehmann_of_rows, seed)


def bootstrap_bca(values: Sample, statistic: Statistic, seed: int, confidence: float = CONFIDENCE) -> Interval:
    """Return the BCa interval of a statistic of ``values``; its percentile interval if BCa is not finite.

    ``statistic`` takes the argument ``axis``. If all values are equal, both ends of the interval are their statistic.
    """
    if np.ptp(values) == 0:
        value = float(statistic(values, axis=-1))
        return Interval(value, value)
    methods: tuple[Literal["BCa", "percentile"], ...] = ("BCa", "percentile")
    for method in methods:
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", scipy.stats.DegenerateDataWarning)
            ends = scipy.stats.bootstrap(
                (values,),
                statistic,
                confidence_level=confidence,
                n_resamples=BCA_RESAMPLES,
                batch=_BATCH,
                method=method,
                vectorized=True,
                rng=np.random.default_rng(seed),
            ).confidence_interval
        if math.isfinite(ends.low) and math.isfinite(ends.high):
            break
    return Interval(float(ends.low), float(ends.high))


def signed_rank_test(diffs: Sample) -> Significance | None:
    """Return the result of Wilcoxon's two-sided signed-rank test; None for fewer than three pairs.

    Differences of zero are left out (Wilcoxon 1945); if all are zero, p is 1. The exact distribution is used up to
    `MOST_EXACT` pairs without ties, and all signs are enumerated up to `MOST_SIGN_FLIPS` pairs with ties. Beyond, the
    normal approximation is used, corrected for ties and continuity. ``name`` contains the method.
    """
    if len(diffs) < MIN_FOR_INTERVAL:
        return None
    left = diffs[diffs != 0]
    if not len(left):
        return Significance(1.0, "signed rank, all differences are zero", 1.0)
    least_p = min(1.0, 2.0 ** (1 - len(left)))
    if len(left) <= MOST_EXACT and len(np.unique(np.abs(left))) == len(left):
        return Significance(float(scipy.stats.wilcoxon(left, method="exact").pvalue), "signed rank, exact", least_p)
    if len(left) <= MOST_SIGN_FLIPS:
        method = scipy.stats.PermutationMethod(n_resamples=2**MOST_SIGN_FLIPS + 1)
        p = float(scipy.stats.wilcoxon(left, method=method).pvalue)
        return Significance(min(1.0, p), "signed rank, all signs", least_p)
    p = float(scipy.stats.wilcoxon(left, method="approx", correction=True).pvalue)
    return Significance(min(1.0, p), "signed rank, normal approximation", least_p)


def step_down(family: Sequence[Mapping[int, float]], seed: int) -> list[float]:
    """Return p-values that control the family-wise error rate of paired comparisons by joint permutation.

    This is the step-down maxT method (Westfall & Young 1993, algorithm 2.8). A permutation flips the signs of all
    differences of some blocks. The statistic of a comparison is the standard normal deviate that corresponds to
    Student's t (Wallace 1959), so that comparisons of few blocks do not dominate those of many. Since equal and similar
    comparisons stay equal and similar in each permutation, the smallest possible p is 2 · 0.5ⁿ for any number of
    comparisons. All signs are enumerated up to `MOST_SIGN_FLIPS` blocks.

    Args:
        family: block → difference, for each comparison.
        seed: seed of the random signs.
    """
    blocks = sorted(set().union(*family))
    if not blocks:
        return [1.0] * len(family)
    matrix = np.array([[differences.get(block, 0.0) for differences in family] for block in blocks])
    sizes = np.array([max(1, len(differences)) for differences in family], dtype=float)
    norms = np.sqrt((matrix**2).sum(axis=0) * sizes)
    matrix = np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0)
    observed = _deviates(matrix.sum(axis=0), sizes)
    order = np.argsort(observed, kind="stable")
    reached, signs = np.zeros(len(family)), _signs(len(blocks), seed)
    for start in range(0, len(signs), _BATCH):
        statistics = _deviates(signs[start : start + _BATCH] @ matrix, sizes)[:, order]
        reached += (np.maximum.accumulate(statistics, axis=1) >= observed[order] - _ROUNDING).sum(axis=0)
    p = np.empty(len(family))
    p[order] = np.maximum.accumulate((reached / len(signs))[::-1])[::-1]
    return [float(value) for value in p]


def _deviates(shares: Sample, sizes: Sample) -> Sample:
    """Return the absolute normal deviates that correspond to Student's t (Wallace 1959).

    Args:
        shares: Σ d / √(n Σ d²): -1 to 1.
        sizes: n.
    """
    free = sizes - 1
    left = 1 - np.minimum(np.round(shares**2, _KEPT_DIGITS), 1 - 10.0**-_KEPT_DIGITS)
    deviates: Sample = (8 * free + 1) / (8 * free + 3) * np.sqrt(-free * np.log(left))
    return deviates


def _signs(blocks: int, seed: int) -> Sample:
    """Return rows of signs, the observed ones first; the first block keeps its sign, since |−t| = |t|."""
    if blocks <= MOST_SIGN_FLIPS:
        return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=blocks - 1)])
    drawn = np.random.default_rng(seed).choice((1.0, -1.0), size=(RANDOM_SIGNS, blocks))
    return np.vstack([np.ones((1, blocks)), drawn])


def dominance(diffs: Sample) -> float:
    """Return the share of differences above zero minus the share below (Cliff 1993, d within): -1 … 1."""
    return float(np.sign(diffs).mean())


def geometric_ratio(sample: Sequence[float], reference: Sequence[float]) -> tuple[float, Interval | None] | None:
    """Return the geometric mean of the ratios ``sample / reference``, pair by pair, with its 95 % t interval.

    The interval is Student's for the mean of the logarithms, or None for fewer than three pairs. Ratios that differ
    only by rounding give an interval without width. Return None without pairs, when a value is not positive (its
    logarithm is undefined), or when a ratio is outside of e⁻¹⁰⁰ … e¹⁰⁰, which no measurement reaches.
    """
    own, other = np.asarray(sample, dtype=float), np.asarray(reference, dtype=float)
    if not len(own) or min(own.min(), other.min()) <= 0:
        return None
    logs: Sample = np.round(np.log(own) - np.log(other), _KEPT_DIGITS)
    if np.abs(logs).max() > _MOST_LOG:
        return None
    mean, n = float(logs.mean()), len(logs)
    if n < MIN_FOR_INTERVAL:
        return math.exp(mean), None
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * logs.std(ddof=1)) / math.sqrt(n)
    return math.exp(mean), Interval(math.exp(mean - half), math.exp(mean + half))


def _averages(diffs: Sample) -> Sample:
    """Return the Walsh averages (d_i + d_j) / 2, i ≤ j, of the differences d on the last axis.

    Shape: (…, n) → (…, n (n + 1) / 2).
    """
    first, second = np.triu_indices(diffs.shape[-1])
    averages: Sample = (diffs[..., first] + diffs[..., second]) / 2
    return averages


def _hodges_lehmann_of_rows(diffs: Sample, axis: int = -1) -> Sample:
    medians: Sample = np.median(_averages(np.moveaxis(diffs, axis, -1)), axis=-1)
    return medians


def _rejected_ranks(n: int, confidence: float) -> int:
    """Return r for `n` pairs: the confidence interval goes from the r-th smallest to the r-th largest Walsh average.

    0: `n` is too small for an interval."""
    tail = (1 - confidence) / 2
    if n > MOST_EXACT:
        spread = math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(1, math.floor(n * (n + 1) / 4 + float(scipy.stats.norm.ppf(tail)) * spread))
    probabilities = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(probabilities) + rank)
        longer[: len(probabilities)] += probabilities / 2
        longer[rank:] += probabilities / 2
        probabilities = longer
    return int(np.searchsorted(np.cumsum(probabilities), tail * (1 + 1e-12), side="right"))
