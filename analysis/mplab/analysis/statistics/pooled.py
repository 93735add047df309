"""Compute a median, a mean or a gain from cells that have several values each, with the cell as the block.

The values of a cell are alike: they share the cell's seed, its losses and the load of the host. The bootstrap therefore
resamples whole cells and keeps their values together (cluster bootstrap: Davison & Hinkley 1997 §3.8; Field & Welsh
2007). An interval that treated the values as independent would be too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mplab.analysis.statistics.effects import (
    CONFIDENCE,
    MIN_FOR_INTERVAL,
    RESAMPLES,
    Better,
    Interval,
    Sample,
    gain,
    gain_interval,
    median_interval,
)

Summary = Literal["median", "mean", "pooled"]
"""``median``: median of the cells' medians. ``mean``: mean of all values. ``pooled``: median of all values."""

Cells: TypeAlias = Sequence[Sequence[float]]
"""The values of each cell; every cell has at least one."""

_BATCH_NUMBERS = 2_000_000


@dataclass(frozen=True)
class Estimate:
    """A statistic of the values of several cells; ``interval`` is its 95 % interval, None for fewer than three cells.

    ``cells`` and ``values`` are the numbers of cells and of values; of a gain, those of the transport with the fewest.
    """

    value: float
    interval: Interval | None
    cells: int
    values: int


def estimate(cells: Cells, summary: Summary, seed: int) -> Estimate:
    """Return a statistic of the values of at least one cell, with its interval.

    The interval of ``median`` is `median_interval` of the cells' medians. The others are `expanded` percentile
    intervals of the cluster bootstrap.
    """
    value, count = statistic(cells, summary), sum(map(len, cells))
    if summary == "median":
        return Estimate(value, median_interval([median(values) for values in cells], seed), len(cells), count)
    if len(cells) < MIN_FOR_INTERVAL:
        return Estimate(value, None, len(cells), count)
    return Estimate(value, expanded(resampled(cells, summary, seed), value, len(cells)), len(cells), count)


def pooled_gain(
    single_paths: Sequence[Cells], multipath: Cells, better: Better, summary: Summary, seed: int
) -> Estimate | None:
    """Return G of han2015 §4 (`mplab.analysis.statistics.effects.gain`), computed from a statistic of each transport.

    Each resample selects its best single path. Transports are resampled independently of each other. Return None when G
    is not defined; ``interval`` is None when a transport has fewer than three cells, or a resample has no G.
    """
    transports = (*single_paths, multipath)
    values = [statistic(cells, summary) for cells in transports]
    found = gain(values[:-1], values[-1], better)
    if found is None:
        return None
    fewest, count = min(map(len, transports)), min(sum(map(len, cells)) for cells in transports)
    if summary == "median":
        medians = [[median(values) for values in cells] for cells in transports]
        return Estimate(found, gain_interval(medians[:-1], medians[-1], better, seed), fewest, count)
    if fewest < MIN_FOR_INTERVAL:
        return Estimate(found, None, fewest, count)
    gains = resampled_gain(single_paths, multipath, better, summary, seed)
    return Estimate(found, expanded(gains, found, fewest), fewest, count)


def statistic(cells: Cells, summary: Summary) -> float:
    """Return a statistic of the values of at least one cell. A cell with more values has more weight, except for
    ``median``, where each cell has the same weight.
    """
    if summary == "median":
        return float(median(median(values) for values in cells))
    everything = [value for values in cells for value in values]
    return math.fsum(everything) / len(everything) if summary == "mean" else float(median(everything))


def resampled(cells: Cells, summary: Summary, seed: int) -> Sample:
    """Return the statistic of `RESAMPLES` resamples, each of which draws as many cells as there are, with replacement.

    The share of resamples on the other side of a hypothesis is a one-sided p-value of the bootstrap.
    """
    return _resampled(cells, summary, np.random.default_rng(seed))


def resampled_gain(
    single_paths: Sequence[Cells], multipath: Cells, better: Better, summary: Summary, seed: int
) -> Sample:
    """Return the gain of `RESAMPLES` resamples; NaN where it is not defined, as for every one of ``neither``."""
    rng = np.random.default_rng(seed)
    singles = np.stack([_resampled(cells, summary, rng) for cells in single_paths])
    multi = _resampled(multipath, summary, rng)
    sign = {"lower": 1.0, "higher": -1.0, "neither": math.nan}[better]
    best = singles.min(axis=0) if better == "lower" else singles.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gains: Sample = sign * (best - multi) / np.where(best > 0, best, np.nan)
    return gains


def expanded(statistics: Sample, value: float, cells: int) -> Interval | None:
    """Return the expanded 95 % percentile interval (Hesterberg 2015) of the statistics of resamples.

    The percentile interval of n cells is too narrow by √((n - 1) / n) and by the normal in place of Student's
    quantile. The expanded interval takes percentiles further out, by both factors; its coverage is near 95 % from about
    ten cells on. It contains ``value``, the statistic of the cells themselves. Return None if an end is not finite.
    """
    if cells < MIN_FOR_INTERVAL:
        return None
    reach = math.sqrt(cells / (cells - 1)) * float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, cells - 1))
    tail = float(scipy.stats.norm.sf(reach))
    low, high = (float(end) for end in np.quantile(statistics, (tail, 1 - tail)))
    if not (math.isfinite(low) and math.isfinite(high)):
        return None
    return Interval(min(low, value), max(high, value))


def effective_values(cells: Cells) -> float:
    """Return the number of independent values that would give the mean the same standard error.

    That is N / (1 + (m - 1) ρ) (Kish 1965), with N values, m per cell, and the intraclass correlation ρ from the
    analysis of variance (Donner 1986). It is N without correlation, and the number of cells if the values of a cell are
    equal. With one cell, or one value each, ρ cannot be estimated: the result is the number of cells.
    """
    sizes = np.array([len(values) for values in cells], dtype=float)
    count, groups = float(sizes.sum()), len(cells)
    if groups < 2 or count == groups:
        return float(groups)
    means = np.array([np.mean(values) for values in cells])
    total = float(sizes @ means) / count
    between = float(sizes @ (means - total) ** 2) / (groups - 1)
    within = math.fsum(float(np.sum((np.asarray(v) - m) ** 2)) for v, m in zip(cells, means, strict=True))
    within /= count - groups
    size = (count - float(sizes @ sizes) / count) / (groups - 1)
    spread = between + (size - 1) * within
    correlation = min(1.0, max(0.0, (between - within) / spread)) if spread > 0 else 1.0
    return count / (1 + (count / groups - 1) * correlation)


def _resampled(cells: Cells, summary: Summary, rng: np.random.Generator) -> Sample:
    if summary == "median":
        cells = [[median(values)] for values in cells]
    n = len(cells)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(np.int32)
    if summary == "mean":
        sums = np.array([math.fsum(values) for values in cells])
        means: Sample = (draws @ sums) / (draws @ np.array([len(values) for values in cells]))
        return means
    return _medians(cells, draws)


def _medians(cells: Cells, draws: npt.NDArray[np.int32]) -> Sample:
    """Return the median of all values of each resample; ``draws`` has how often a resample has each cell."""
    everything = np.concatenate([np.asarray(values, dtype=float) for values in cells])
    owner = np.repeat(np.arange(len(cells)), [len(values) for values in cells])
    order = np.argsort(everything, kind="stable")
    everything, owner = everything[order], owner[order]
    result = np.empty(len(draws))
    steps = range(0, len(draws) + 1, max(1, _BATCH_NUMBERS // len(everything)))
    for start, end in pairwise((*steps, len(draws))):
        reached = np.cumsum(draws[start:end, owner], axis=1, dtype=np.int32)
        total = reached[:, -1:]
        middles = [everything[np.argmax(reached > rank, axis=1)] for rank in ((total - 1) // 2, total // 2)]
        result[start:end] = (middles[0] + middles[1]) / 2
    return result
