"""Find changes of level in a series with one value per run."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import comb

import numpy as np

from mplab.analysis.statistics.effects import Sample

LEVEL = 0.01
"""Significance level of each test for a change; low, since a trend page tests many series every night."""

FEWEST = 2
"""Minimum number of runs before and after each change."""

SHUFFLES = 1999
SHUFFLES_OF_FEW, FEW = 19_999, 12
"""Number of permutations of up to `FEW` runs: the smallest possible p is near `LEVEL`."""

FEWEST_RUNS = next(n for n in count(2 * FEWEST) if 2 / comb(n, n // 2) <= LEVEL)
"""Minimum number of runs of a series for a verdict: with fewer, not even two separate halves can reach `LEVEL`."""


@dataclass(frozen=True)
class ChangePoint:
    """A change of level; run ``index`` (from 0) is the first with the new level.

    ``before`` is the median of the ``n_before`` values since the previous change (or the start), ``after`` the median
    of the ``n_after`` values until the next change (or the end). ``statistic`` is the standardised difference of the
    means in the test that found the change, ``p`` its p-value.
    """

    index: int
    before: float
    after: float
    p: float
    statistic: float
    n_before: int
    n_after: int


def change_points(values: Sequence[float], seed: int, level: float = LEVEL) -> list[ChangePoint]:
    """Return the changes of level in ``values``, which has one value per run; oldest first.

    The method is binary segmentation (Vostrikova 1981). Its statistic is the largest standardised difference between
    the mean before a run and the mean from this run on (likelihood ratio of Hinkley 1970), in standard deviations of
    the tested values. Its p is the share of `SHUFFLES` (or `SHUFFLES_OF_FEW`) random permutations of the values whose
    statistic is at least as large. The test assumes no distribution, only that values without a change are
    exchangeable. A drift appears as one or more changes.
    """
    sample = np.asarray(values, dtype=float)
    splits = sorted(_split(sample, 0, len(sample), np.random.default_rng(seed), level))
    edges = [0, *(index for index, _, _ in splits), len(sample)]
    return [
        ChangePoint(
            index,
            float(np.median(sample[start:index])),
            float(np.median(sample[index:end])),
            p,
            statistic,
            index - start,
            end - index,
        )
        for start, (index, p, statistic), end in zip(edges, splits, edges[2:], strict=False)
    ]


def _split(
    sample: Sample, start: int, end: int, rng: np.random.Generator, level: float
) -> list[tuple[int, float, float]]:
    """Return (index, p, statistic) of each change in ``sample[start:end]``."""
    part = sample[start:end]
    if len(part) < 2 * FEWEST or np.ptp(part) == 0:
        return []
    scores = _scores(part[np.newaxis, :])[0]
    best = int(scores.argmax())
    shuffles = SHUFFLES_OF_FEW if len(part) <= FEW else SHUFFLES
    shuffled = rng.permuted(np.tile(part, (shuffles, 1)), axis=1)
    as_large = int((_scores(shuffled).max(axis=1) >= scores[best] * (1 - 1e-9)).sum())
    p = (1 + as_large) / (1 + shuffles)
    if p > level:
        return []
    index, statistic = start + FEWEST + best, float(scores[best] / np.std(part, ddof=1))
    before = _split(sample, start, index, rng, level)
    return [*before, (index, p, statistic), *_split(sample, index, end, rng, level)]


def _scores(rows: Sample) -> Sample:
    """Return the difference between the means before and after each possible change, for each row.

    The differences are standardised except for the division by the standard deviation, which permutations keep. A
    possible change has at least `FEWEST` values before and after it. Shape: (rows, n) → (rows, n - 2 * FEWEST + 1).
    """
    n = rows.shape[1]
    before = np.arange(FEWEST, n - FEWEST + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, before - 1]
    scores: Sample = np.abs(sums) * np.sqrt(n / (before * (n - before)))
    return scores
