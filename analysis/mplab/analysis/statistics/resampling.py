"""Resample cells with all their values: a bootstrap in which the cell is the block.

The values of one cell were measured within one minute over the same link, and resemble each other. A resample therefore
draws cells, and keeps the values of each cell together (cluster bootstrap; Davison & Hinkley 1997, §3.8).
"""

import math
from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from mplab.analysis.statistics.effects import CONFIDENCE, MIN_FOR_INTERVAL, RESAMPLES, Interval, Sample

CellStatistic = Literal["median", "mean", "pooled"]
CellValues: TypeAlias = Sequence[Sequence[float]]
"""Values of each cell; no cell is without values."""

_BATCH = 500


def cell_statistic(cells: CellValues, statistic: CellStatistic) -> float:
    """Return the statistic of at least one cell.

    median: median of the cells' medians; mean: mean of the cells' means; pooled: median of all values of all cells.
    """
    if statistic == "pooled":
        return float(np.median(np.concatenate([np.asarray(values, dtype=float) for values in cells])))
    of_cells = _of_cells(cells, statistic)
    return float(of_cells.mean() if statistic == "mean" else np.median(of_cells))


def draws(cells: CellValues, statistic: CellStatistic, seed: int, resamples: int = RESAMPLES) -> Sample | None:
    """Return the statistic of each resample; None for fewer than three cells."""
    n = len(cells)
    if n < MIN_FOR_INTERVAL:
        return None
    chosen = resampled(n, seed, resamples)
    if statistic != "pooled":
        rows = _of_cells(cells, statistic)[chosen]
        drawn: Sample = rows.mean(axis=1) if statistic == "mean" else np.median(rows, axis=1)
        return drawn
    return np.concatenate([_pooled(cells, chosen[start : start + _BATCH]) for start in range(0, resamples, _BATCH)])


def resampled(cells: int, seed: int, resamples: int = RESAMPLES) -> npt.NDArray[np.int64]:
    """Return the indices of the cells of each resample: a row per resample."""
    return np.random.default_rng(seed).integers(cells, size=(resamples, cells))


def percentile_interval(drawn: Sample | None, cells: int, confidence: float = CONFIDENCE) -> Interval | None:
    """Return the expanded percentile interval (Hesterberg 2015) of a statistic.

    The percentile interval of n cells is too narrow by √((n - 1) / n), and by the normal instead of Student's quantile.
    The expanded interval takes percentiles further out, by both factors; its coverage is near ``confidence`` from about
    ten cells on.

    Args:
        drawn: the statistic of each resample; None: there is no interval.
        cells: number of cells; with several transports, the smallest one.
        confidence: 0 … 1.

    Returns:
        None without resamples, or if one of them has no statistic.
    """
    if drawn is None or np.isnan(drawn).any():
        return None
    reach = math.sqrt(cells / (cells - 1)) * float(scipy.stats.t.ppf((1 + confidence) / 2, cells - 1))
    outside = float(scipy.stats.norm.sf(reach))
    low, high = np.quantile(drawn, (outside, 1 - outside), method="inverted_cdf")
    return Interval(float(low), float(high))


def tail(drawn: Sample | None, smallest: float, *, above: float = -math.inf, below: float = math.inf) -> float | None:
    """Return a one-sided p: the share of resamples from ``above`` to ``below``; at least ``smallest``.

    The observed sample counts as one resample (Davison & Hinkley 1997, §4.2). None without resamples.
    """
    if drawn is None or np.isnan(drawn).any():
        return None
    hits = int(((drawn >= above) & (drawn <= below)).sum())
    return max(smallest, (1 + hits) / (1 + len(drawn)))


def least_p(*sizes: int) -> float:
    """Return the smallest one-sided p that samples of these sizes allow.

    A bootstrap of few cells gives too small p-values. The bound is the p of the most extreme arrangement in an exact
    test: of the signs of one sample, or of the ranks of the two smallest samples.
    """
    if len(sizes) == 1:
        return float(0.5 ** sizes[0])
    first, second = sorted(sizes)[:2]
    return 1 / math.comb(first + second, first)


def _of_cells(cells: CellValues, statistic: CellStatistic) -> Sample:
    centre = np.mean if statistic == "mean" else np.median
    return np.array([float(centre(np.asarray(values, dtype=float))) for values in cells])


def _pooled(cells: CellValues, chosen: npt.NDArray[np.int64]) -> Sample:
    """Return the median of all values of the chosen cells, for each row of indices of cells."""
    values = np.concatenate([np.asarray(own, dtype=float) for own in cells])
    owner = np.repeat(np.arange(len(cells)), [len(own) for own in cells])
    order = np.argsort(values, kind="stable")
    values, owner = values[order], owner[order]
    times = np.stack([(chosen == cell).sum(axis=1) for cell in range(len(cells))], axis=1)
    reached = np.cumsum(times[:, owner], axis=1)
    total = reached[:, -1]
    low = values[(reached >= ((total + 1) // 2)[:, None]).argmax(axis=1)]
    high = values[(reached >= (total // 2 + 1)[:, None]).argmax(axis=1)]
    middle: Sample = (low + high) / 2
    return middle
