"""Statistics of two independent samples compared with scipy and with values by hand, ties included."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mplab.analysis.metric import in_unit, units_like
from mplab.analysis.statistics import unpaired
from mplab.analysis.statistics.effects import Sample

few = settings(max_examples=40, deadline=None)
small = st.lists(st.integers(0, 6).map(float), min_size=3, max_size=6).map(np.asarray)

# Hollander & Wolfe 1973, p. 69 f.: permeability constants of the human chorioamnion at term and at 12 to 26 weeks,
# the example of R's wilcox.test.
AT_TERM = np.array([0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46])
EARLIER = np.array([1.15, 0.88, 0.90, 0.74, 1.21])


def test_the_permeability_data_of_hollander_and_wolfe() -> None:
    # R: W = 35, p = 0.2544, difference in location 0.305, 95 % interval -0.15 … 0.76.
    test = unpaired.rank_sum_test(AT_TERM, EARLIER)
    interval = unpaired.shift_interval(AT_TERM, EARLIER)
    assert test is not None
    assert interval is not None
    assert test.p == pytest.approx(0.2544, abs=5e-5)
    assert test.name == "rank sum, exact"
    assert unpaired.shift(AT_TERM, EARLIER) == pytest.approx(0.305)
    assert (interval.low, interval.high) == pytest.approx((-0.15, 0.76))


@pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 9), (12, 12), (30, 50)])
def test_the_interval_holds_what_the_test_does_not_reject(m: int, n: int) -> None:
    rng = np.random.default_rng(m * n)
    sample, reference = rng.normal(1, 1, m), rng.normal(0, 1, n)
    interval = unpaired.shift_interval(sample, reference)
    assert interval is not None
    for inside in (interval.low + 1e-9, interval.high - 1e-9):
        assert stats.mannwhitneyu(sample - inside, reference, method="exact").pvalue > 0.05
    for outside in (interval.low - 1e-9, interval.high + 1e-9):
        assert stats.mannwhitneyu(sample - outside, reference, method="exact").pvalue <= 0.05


def test_many_values_have_nearly_the_interval_of_few_less() -> None:
    rng = np.random.default_rng(5)
    sample, reference = rng.normal(1, 1, 51), rng.normal(0, 1, 51)
    many = unpaired.shift_interval(sample, reference)
    exact = unpaired.shift_interval(sample[:50], reference[:50])
    assert many is not None
    assert exact is not None
    assert (many.low, many.high) == pytest.approx((exact.low, exact.high), abs=0.1)


def test_three_against_three_can_show_nothing() -> None:
    low, high = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0])
    test = unpaired.rank_sum_test(high, low)
    assert test is not None
    assert test.p == test.least_p == pytest.approx(0.1)
    assert unpaired.shift_interval(high, low) is None
    assert unpaired.rank_sum_test(high[:2], low) is None


@few
@given(small, small)
def test_with_ties_all_arrangements_count(sample: Sample, reference: Sample) -> None:
    test = unpaired.rank_sum_test(sample, reference)
    assert test is not None
    together = np.concatenate([sample, reference])
    if np.ptp(together) == 0:
        assert test.p == 1
        return
    ranks = stats.rankdata(together)
    sums = np.array([sum(chosen) for chosen in itertools.combinations(ranks, len(sample))])
    observed = ranks[: len(sample)].sum()
    expected = 2 * min((sums >= observed - 1e-9).mean(), (sums <= observed + 1e-9).mean())
    assert test.p == pytest.approx(min(1.0, expected))


def test_units_of_one_kind_are_converted() -> None:
    assert in_unit(1500, "ms", "s") == pytest.approx(1.5)
    assert in_unit(2, "Mbit/s", "kbit/s") == pytest.approx(2000)
    assert in_unit(4.1, "", "") == 4.1
    assert in_unit(1, "s", "kB") is None
    assert units_like("ms") == ["ms", "s", "min", "h"]
    assert units_like("") == []
