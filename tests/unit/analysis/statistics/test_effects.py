"""Statistics compared with values worked out by hand, and properties that hold for any sample."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mplab.analysis.statistics import effects
from mplab.analysis.statistics.effects import Interval

numbers = st.floats(0.01, 1e6, allow_nan=False)
samples = st.lists(numbers, min_size=1, max_size=12)
few = settings(max_examples=40, deadline=None)


def test_description_of_a_known_sample() -> None:
    d = effects.describe([4.0, 1.0, 3.0, 2.0], seed=1)
    assert (d.n, d.median, d.q1, d.q3, d.mean) == (4, 2.5, 1.75, 3.25, 2.5)
    assert d.sd == pytest.approx(1.2909944487)
    assert (d.minimum, d.maximum) == (1.0, 4.0)


def test_one_value_has_no_spread_and_no_interval() -> None:
    d = effects.describe([7.0], seed=1)
    assert (d.median, d.q1, d.q3, d.sd, d.interval) == (7.0, 7.0, 7.0, None, None)


@pytest.mark.parametrize("n", [1, 2])
def test_no_interval_below_three(n: int) -> None:
    assert effects.median_interval([1.0] * n, seed=1) is None


def test_interval_of_the_median_is_scipys_percentile_bootstrap() -> None:
    values = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
    reference = stats.bootstrap(
        (values,), np.median, n_resamples=9999, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    assert effects.median_interval(values, seed=5) == Interval(reference.low, reference.high)


def test_interval_of_five_values_is_nearly_their_range() -> None:
    interval = effects.median_interval([1.0, 2.0, 3.0, 4.0, 5.0], seed=1)
    assert interval == Interval(1.0, 5.0)


def test_equal_values_have_an_interval_of_no_width() -> None:
    assert effects.median_interval([2.0, 2.0, 2.0], seed=1) == Interval(2.0, 2.0)


@pytest.mark.parametrize(
    ("singles", "multipath", "better", "expected"),
    [
        ([2.0, 3.0], 1.5, "lower", 0.25),
        ([2.0, 3.0], 3.0, "lower", -0.5),
        ([2.0, 4.0], 5.0, "higher", 0.25),
        ([2.0, 4.0], 3.0, "higher", -0.25),
        ([2.0], 1.0, "lower", 0.5),
        ([0.0, 1.0], 0.5, "lower", None),
        ([], 1.0, "lower", None),
        ([2.0], 1.0, "neither", None),
    ],
)
def test_gain(singles: list[float], multipath: float, better: effects.Better, expected: float | None) -> None:
    assert effects.gain(singles, multipath, better) == expected


def test_interval_of_the_gain_lies_where_the_samples_are_apart() -> None:
    wifi, lte = [10.0, 10.2, 10.1, 9.9], [12.0, 12.1, 11.9, 12.2]
    interval = effects.gain_interval([wifi, lte], [5.0, 5.1, 4.9, 5.2], "lower", seed=3)
    assert interval is not None
    assert 0.45 < interval.low < 0.5 < interval.high < 0.55


def test_interval_of_the_gain_needs_three_values_everywhere() -> None:
    assert effects.gain_interval([[1.0, 2.0]], [1.0, 1.0, 1.0], "lower", seed=1) is None


def test_no_interval_of_the_gain_when_a_resample_has_no_positive_reference() -> None:
    assert effects.gain_interval([[0.0, 1.0, 1.0]], [1.0, 1.0, 1.0], "lower", seed=1) is None


def test_cliffs_delta_by_hand() -> None:
    # Of the nine pairs, 1 is greater, 6 are smaller, 2 are ties.
    assert effects.cliffs_delta([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]) == pytest.approx((1 - 6) / 9)


@pytest.mark.parametrize(
    ("delta", "word"),
    [(0.1, "negligible"), (-0.2, "small"), (0.4, "medium"), (-0.474, "large"), (1.0, "large")],
)
def test_magnitude(delta: float, word: str) -> None:
    assert effects.magnitude(delta) == word


def test_mann_whitney_exact_p() -> None:
    assert effects.mann_whitney_p([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(0.1)
    assert effects.mann_whitney_p([1.0, 2.0], [4.0, 5.0, 6.0]) is None


def test_seed_depends_on_run_and_key_alone() -> None:
    assert effects.seed_of(1, "a", "b") == effects.seed_of(1, "a", "b")
    assert len({effects.seed_of(1, "a", "b"), effects.seed_of(2, "a", "b"), effects.seed_of(1, "ab")}) == 3


@few
@given(samples)
def test_interval_contains_the_median_and_lies_in_the_range(values: list[float]) -> None:
    d = effects.describe(values, seed=9)
    if d.interval is None:
        assert len(values) < 3
    else:
        assert d.median in d.interval
        assert min(values) <= d.interval.low <= d.interval.high <= max(values)


@given(samples, samples)
def test_cliffs_delta_is_antisymmetric_and_bounded(a: list[float], b: list[float]) -> None:
    assert effects.cliffs_delta(a, b) == pytest.approx(-effects.cliffs_delta(b, a))
    assert -1 <= effects.cliffs_delta(a, b) <= 1


@given(samples)
def test_cliffs_delta_with_itself_is_zero(a: list[float]) -> None:
    assert effects.cliffs_delta(a, a) == pytest.approx(0)


@given(st.lists(numbers, min_size=1, max_size=3), numbers, st.floats(0.1, 100))
def test_gain_does_not_depend_on_the_unit(singles: list[float], multipath: float, factor: float) -> None:
    scaled = effects.gain([s * factor for s in singles], multipath * factor, "lower")
    assert scaled == pytest.approx(effects.gain(singles, multipath, "lower"), abs=1e-6, rel=1e-6)
