"""Statistics of cells with several values each: planted truths, and agreement with the other statistics."""

import numpy as np
import pytest

from mplab.analysis.statistics.effects import Interval, median_interval
from mplab.analysis.statistics.pooled import effective_values, estimate
from mplab.analysis.statistics.resampling import CellStatistic, CellValues, cell_statistic

CELLS, EACH, SAMPLES = 10, 10, 80
LEAST = 0.88
"""Smallest coverage of a 95 % interval in SAMPLES samples: three standard errors of the share (0.024) below 95 %."""


def correlated(rng: np.random.Generator, truth: float, cells: int = CELLS, each: int = EACH) -> CellValues:
    """Return values whose cells differ far more (1) than the values inside a cell (0.3)."""
    values: CellValues = (truth + rng.normal(0, 1, (cells, 1)) + rng.normal(0, 0.3, (cells, each))).tolist()
    return values


@pytest.mark.parametrize("summary", ["mean", "pooled"])
def test_the_interval_covers_the_truth_although_the_values_of_a_cell_are_alike(summary: CellStatistic) -> None:
    rng = np.random.default_rng(7)
    covered = naive = 0
    for seed in range(SAMPLES):
        cells = correlated(rng, 20.0)
        found = estimate(cells, summary, seed).interval
        assert found is not None
        covered += 20.0 in found
        alone = estimate([[value] for values in cells for value in values], "mean", seed).interval
        assert alone is not None
        naive += 20.0 in alone
    assert covered >= LEAST * SAMPLES
    assert naive < 0.7 * SAMPLES, "values that are treated as independent give intervals that are too narrow"


def test_the_mean_sees_what_most_values_do_not_have() -> None:
    """Of 100 downloads of a short file, some lose a packet: the medians cannot see it."""
    cells = [[1.0] * 9 + [2.0] for _ in range(10)]
    assert cell_statistic(cells, "median") == cell_statistic(cells, "pooled") == 1.0
    assert cell_statistic(cells, "mean") == pytest.approx(1.1)


def test_one_value_each_gives_the_statistics_of_other_tables() -> None:
    numbers = [3.0, 4.0, 7.0, 5.0]
    cells = [[value] for value in numbers]
    assert estimate(cells, "median", 5).interval == median_interval(numbers, 5)
    assert estimate(cells, "pooled", 5).value == estimate(cells, "median", 5).value == 4.5


def test_repetitions_that_are_all_alike_add_nothing() -> None:
    single = [[3.0], [4.0], [7.0], [5.0]]
    repeated = [values * 25 for values in single]
    assert estimate(repeated, "mean", 3).interval == estimate(single, "mean", 3).interval
    assert effective_values(repeated) == 4


def test_the_median_of_a_resample_is_that_of_its_values() -> None:
    """With two cells, a resample is one cell twice, or both: three possible medians, found by hand."""
    cells = [[1.0, 2.0, 9.0], [4.0, 5.0, 6.0], [4.0, 5.0, 6.0]]
    found = estimate(cells, "pooled", 1)
    assert found.value == 5.0
    assert found.interval == Interval(2.0, 5.0)


def test_independent_values_count_fully() -> None:
    values: CellValues = np.random.default_rng(3).normal(0, 1, (40, 25)).tolist()
    assert effective_values(values) == pytest.approx(1000, rel=0.3)
    assert effective_values([[1.0, 2.0]]) == 1


def test_few_cells_have_no_interval_however_many_values_they_have() -> None:
    few: CellValues = [[1.0, 2.0] * 50, [2.0, 3.0] * 50]
    for summary in ("median", "mean", "pooled"):
        found = estimate(few, summary, 1)
        assert (found.interval, found.cells, found.values) == (None, 2, 200)


def test_the_same_seed_gives_the_same_interval() -> None:
    cells = correlated(np.random.default_rng(1), 5.0)
    assert estimate(cells, "pooled", 9) == estimate(cells, "pooled", 9)
    assert estimate(cells, "pooled", 9) != estimate(cells, "pooled", 10)
