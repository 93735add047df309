"""Statistics of all values of cells that have several values each, such as repetitions inside a cell.

The cell is the block: its values resemble each other, so that they do not count as independent
(`mplab.analysis.statistics.resampling`).
"""

import math
from dataclasses import dataclass
from statistics import median

import numpy as np

from mplab.analysis.statistics.effects import Interval, median_interval
from mplab.analysis.statistics.resampling import CellStatistic, CellValues, cell_statistic, draws, percentile_interval


@dataclass(frozen=True)
class Estimate:
    """A statistic of the values of several cells; ``interval`` is its 95 % interval, None for fewer than three cells.

    ``cells`` and ``values`` are the numbers of cells and of values.
    """

    value: float
    interval: Interval | None
    cells: int
    values: int


def estimate(cells: CellValues, statistic: CellStatistic, seed: int) -> Estimate:
    """Return a statistic of the values of at least one cell, with its interval.

    The interval of ``median`` is `median_interval` of the cells' medians, as in tables with one number per cell. The
    others are expanded percentile intervals of the cluster bootstrap, which contain the statistic itself.
    """
    value, count = cell_statistic(cells, statistic), sum(map(len, cells))
    if statistic == "median":
        return Estimate(value, median_interval([median(values) for values in cells], seed), len(cells), count)
    interval = percentile_interval(draws(cells, statistic, seed), len(cells))
    if interval is not None:
        interval = Interval(min(interval.low, value), max(interval.high, value))
    return Estimate(value, interval, len(cells), count)


def effective_values(cells: CellValues) -> float:
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
