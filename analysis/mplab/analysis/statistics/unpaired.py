"""Compare two independent samples, such as the values of a run and those of other runs."""

import math
import warnings

import numpy as np
import scipy

from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, Interval, Sample
from mplab.analysis.statistics.paired import MOST_EXACT, Significance

MOST_ARRANGEMENTS = 20_000
"""Maximum number of arrangements of the values that are enumerated for the test when there are ties."""


def shift(sample: Sample, reference: Sample) -> float:
    """Return the estimated shift: the median of all differences x - y, x of ``sample``, y of ``reference``.

    Source: Hodges & Lehmann 1963.
    """
    return float(np.median(np.subtract.outer(sample, reference)))


def shift_interval(sample: Sample, reference: Sample) -> Interval | None:
    """Return the shifts that the Mann-Whitney test does not reject at 5 % (Hollander & Wolfe 1999, §4.3).

    The interval is exact up to `MOST_EXACT` values on each side, and uses the normal approximation beyond. With too
    few values, the result is ``None``.
    """
    rank = _rejected_ranks(len(sample), len(reference))
    if rank < 1:
        return None
    differences = np.sort(np.subtract.outer(sample, reference), axis=None)
    return Interval(float(differences[rank - 1]), float(differences[-rank]))


def rank_sum_test(sample: Sample, reference: Sample) -> Significance | None:
    """Return the result of the two-sided Mann-Whitney test; None when a sample has fewer than three values.

    The test is exact without ties up to `MOST_EXACT` values on each side. Otherwise all arrangements are enumerated if
    there are at most `MOST_ARRANGEMENTS`; beyond, the normal approximation is used, corrected for ties and continuity.
    ``name`` contains the method.
    """
    m, n = len(sample), len(reference)
    if min(m, n) < MIN_FOR_INTERVAL:
        return None
    arrangements = math.comb(m + n, m)
    least_p = 2 / arrangements
    together = np.concatenate([sample, reference])
    if np.ptp(together) == 0:
        return Significance(1.0, "rank sum, all values are equal", 1.0)
    if len(np.unique(together)) == m + n and max(m, n) <= MOST_EXACT:
        p = float(scipy.stats.mannwhitneyu(sample, reference, method="exact").pvalue)
        return Significance(p, "rank sum, exact", least_p)
    if arrangements <= MOST_ARRANGEMENTS:
        method = scipy.stats.PermutationMethod(n_resamples=MOST_ARRANGEMENTS)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            p = float(scipy.stats.mannwhitneyu(sample, reference, method=method).pvalue)
        return Significance(min(1.0, p), "rank sum, all arrangements", least_p)
    p = float(scipy.stats.mannwhitneyu(sample, reference, method="asymptotic").pvalue)
    return Significance(min(1.0, p), "rank sum, normal approximation", least_p)


def _rejected_ranks(m: int, n: int) -> int:
    """Return r: the interval ends at the r-th smallest and the r-th largest difference; 0: there is no interval."""
    tail = (1 - CONFIDENCE) / 2
    if max(m, n) > MOST_EXACT:
        spread = math.sqrt(m * n * (m + n + 1) / 12)
        return math.floor(m * n / 2 + float(scipy.stats.norm.ppf(tail)) * spread)
    share = np.cumsum(_arrangements(m, n)) / math.comb(m + n, m)
    return int(np.searchsorted(share, tail * (1 + 1e-12), side="right"))


def _arrangements(m: int, n: int) -> Sample:
    """Return the number of arrangements of m + n ranks for each value of U: the Gaussian binomial coefficients."""
    counts = np.zeros(m * n + 1)
    counts[0] = 1
    for k in range(1, m + 1):
        for u in range(m * n, n + k - 1, -1):
            counts[u] -= counts[u - n - k]
        for u in range(k, m * n + 1):
            counts[u] += counts[u - k]
    return counts
