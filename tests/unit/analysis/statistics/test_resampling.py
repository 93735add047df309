"""Bootstrap of cells with all their values."""

import math

import numpy as np
import pytest

from mplab.analysis.statistics.effects import median_interval
from mplab.analysis.statistics.resampling import cell_statistic, draws, least_p, percentile_interval, tail

CELLS = [[1.0, 2.0, 30.0], [4.0], [5.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


def test_the_statistics() -> None:
    assert cell_statistic(CELLS, "median") == 5.0
    assert cell_statistic(CELLS, "mean") == pytest.approx((11.0 + 4.0 + 6.0 + 9.5) / 4)
    assert cell_statistic(CELLS, "pooled") == pytest.approx(7.5)


def test_a_pooled_resample_has_all_values_of_its_cells() -> None:
    drawn = draws(CELLS, "pooled", seed=7, resamples=50)
    assert drawn is not None
    chosen = np.random.default_rng(7).integers(4, size=(50, 4))
    expected = [np.median(np.concatenate([CELLS[cell] for cell in row])) for row in chosen]
    assert drawn == pytest.approx(expected)


def test_the_interval_is_wider_than_that_of_the_percentiles() -> None:
    values = [3.0, 1.0, 4.0, 1.5, 9.0, 2.6]
    cells = [[value] for value in values]
    plain, expanded = median_interval(values, 3), percentile_interval(draws(cells, "median", 3), len(cells))
    assert plain is not None and expanded is not None  # noqa: PT018
    assert expanded.low <= plain.low < plain.high <= expanded.high
    assert draws(cells[:2], "median", 3) is None


@pytest.mark.long
def test_the_cell_is_the_block() -> None:
    """Values in a cell are nearly equal: the interval of 8 x 50 values must cover like that of 8 values."""
    rng = np.random.default_rng(11)
    covered = narrow = 0
    for seed in range(200):
        levels = rng.normal(10.0, 1.0, 15)
        cells = [list(rng.normal(level, 0.05, 20)) for level in levels]
        interval = percentile_interval(draws(cells, "pooled", seed, resamples=400), 15)
        apart = [[v] for cell in cells for v in cell]
        alone = percentile_interval(draws(apart, "pooled", seed, resamples=400), len(apart))
        assert interval is not None and alone is not None  # noqa: PT018
        covered += 10.0 in interval
        narrow += 10.0 in alone
    assert covered / 200 > 0.88
    assert narrow / 200 < 0.6, "values that are treated as independent give too narrow intervals"


def test_tails() -> None:
    drawn = np.array([-1.0, 0.0, 1.0, 2.0])
    assert tail(drawn, 0.0, above=0.0) == pytest.approx(4 / 5)
    assert tail(drawn, 0.0, below=-1.0) == pytest.approx(2 / 5)
    assert tail(drawn, 0.9, above=5.0) == pytest.approx(0.9)
    assert tail(np.array([math.nan]), 0.0, above=0.0) is None


def test_few_cells_cannot_have_a_small_p() -> None:
    assert least_p(3) == pytest.approx(1 / 8)
    assert least_p(3, 3) == pytest.approx(1 / 20)
    assert least_p(9, 3, 3) == pytest.approx(1 / 20)
