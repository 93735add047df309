"""Paired statistics compared with scipy and with published examples, and properties that hold for any sample."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mplab.analysis.statistics import paired
from mplab.analysis.statistics.effects import Interval, Sample, cliffs_delta

few = settings(max_examples=40, deadline=None)
some_differences = st.lists(st.integers(-50, 50).map(lambda n: n / 4), min_size=1, max_size=12).map(np.asarray)

# Hollander & Wolfe 1973, p. 29: Hamilton depression scale factor IV of nine patients before and after a tranquilizer.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

# Darwin 1876, The effects of cross and self fertilisation, table 97, after Fisher 1935: heights of pairs of maize
# plants, crossed less self-fertilised, in eighths of an inch; the example of scipy.stats.wilcoxon.
MAIZE = np.array([6, 8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75], dtype=float)

# Efron & Tibshirani 1993, table 14.1: spatial test data of 26 children, A.
SPATIAL = "48 36 20 29 42 42 20 42 22 41 45 14 6 0 33 28 34 4 32 24 47 41 24 26 30 41"


def ends(interval: Interval | None) -> tuple[float, float]:
    assert interval is not None
    return (interval.low, interval.high)


def walsh_by_hand(values: Sample) -> list[float]:
    return sorted((a + b) / 2 for a, b in itertools.combinations_with_replacement(values.tolist(), 2))


def test_the_depression_data_of_hollander_and_wolfe() -> None:
    # R's wilcox.test gives the same: V = 40, p = 0.03906, pseudomedian 0.46, interval 0.010 … 0.786.
    differences = paired.differences(BEFORE, AFTER)
    assert paired.hodges_lehmann(differences) == pytest.approx(0.46)
    assert ends(paired.signed_rank_interval(differences)) == pytest.approx((0.010, 0.786))
    test = paired.signed_rank_test(differences)
    assert test is not None
    assert test.p == pytest.approx(0.0390625)
    assert test.name == "signed rank, exact"


def test_darwins_maize() -> None:
    test = paired.signed_rank_test(MAIZE)
    assert test is not None
    assert test.p == pytest.approx(0.041259765625)


def test_the_bca_interval_of_the_variance_of_the_spatial_data() -> None:
    # Efron & Tibshirani 1993, table 14.2: BCa interval, 90 %, of the plug-in variance 171.5: 115.8 … 259.6 from
    # 2000 resamples; the percentile interval is 100.8 … 233.9.
    values = np.array([float(word) for word in SPATIAL.split()])
    assert values.var() == pytest.approx(171.5, abs=0.05)
    interval = paired.bootstrap_bca(values, np.var, seed=1, confidence=0.9)
    assert interval.low == pytest.approx(115.8, rel=0.04)
    assert interval.high == pytest.approx(259.6, rel=0.04)


def test_cliffs_delta_of_hogarty_and_kromrey() -> None:
    # Hogarty & Kromrey 1999, the example of cliff.delta in R's effsize: -0.25.
    treatment, control = [10, 10, 20, 20, 20, 30, 30, 30, 40, 50], [10, 20, 30, 40, 40, 50]
    assert cliffs_delta(treatment, control) == pytest.approx(-0.25)


def test_the_bca_interval_is_scipys() -> None:
    differences = paired.differences(BEFORE, AFTER)

    def statistic(values: Sample) -> float:
        return float(np.median(walsh_by_hand(values)))

    reference = stats.bootstrap(
        (differences,),
        statistic,
        n_resamples=1999,
        batch=250,
        method="BCa",
        rng=np.random.default_rng(3),
        vectorized=False,
    ).confidence_interval
    assert ends(paired.bca_interval(differences, seed=3)) == pytest.approx((reference.low, reference.high))


@pytest.mark.parametrize("n", [6, 8, 15, 30, 50])
def test_the_interval_holds_what_the_test_does_not_reject(n: int) -> None:
    differences = np.round(np.random.default_rng(n).normal(1.0, 2.0, n), 6)
    interval = paired.signed_rank_interval(differences)
    assert interval is not None
    width = interval.high - interval.low
    for inside in (interval.low + 1e-7 * width, interval.high - 1e-7 * width):
        assert stats.wilcoxon(differences - inside).pvalue > 0.05
    for outside in (interval.low - 1e-7 * width, interval.high + 1e-7 * width):
        assert stats.wilcoxon(differences - outside).pvalue <= 0.05


@pytest.mark.parametrize("n", [1, 3, 5])
def test_below_six_pairs_the_signed_ranks_have_no_interval(n: int) -> None:
    assert paired.signed_rank_interval(np.arange(float(n))) is None


def test_many_pairs_have_an_interval_near_the_exact_one() -> None:
    differences = np.random.default_rng(7).normal(3.0, 1.0, 51)
    interval = paired.signed_rank_interval(differences)
    shorter = paired.signed_rank_interval(differences[:50])
    assert interval is not None
    assert shorter is not None
    assert interval.low == pytest.approx(shorter.low, abs=0.1)
    assert interval.high == pytest.approx(shorter.high, abs=0.1)
    assert paired.bca_interval(differences, seed=1) is None


def test_equal_differences_are_no_trouble() -> None:
    differences = paired.differences([3.1, 4.1, 5.1, 6.1, 7.1, 8.1], [3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    assert paired.hodges_lehmann(differences) == pytest.approx(0.1)
    assert ends(paired.signed_rank_interval(differences)) == pytest.approx((0.1, 0.1))
    assert ends(paired.bca_interval(differences, seed=1)) == pytest.approx((0.1, 0.1))
    test = paired.signed_rank_test(differences)
    assert test is not None
    assert test.p == pytest.approx(2 / 2**6)
    assert test.name == "signed rank, all signs"


def test_no_difference_at_all_is_no_difference() -> None:
    differences = paired.differences([1.0, 2.0, 0.3], [1.0, 2.0, 0.1 + 0.2])
    assert differences.tolist() == [0.0, 0.0, 0.0], "the last digit of a sum is no difference"
    test = paired.signed_rank_test(differences)
    assert test is not None
    assert (test.p, test.least_p) == (1.0, 1.0)
    assert paired.dominance(differences) == 0


@few
@given(some_differences)
def test_with_ties_and_zeros_the_p_value_counts_all_signs(
    found: Sample,
) -> None:
    test = paired.signed_rank_test(found)
    left = found[found != 0]
    if len(found) < 3:
        assert test is None
        return
    assert test is not None
    if not len(left):
        return
    ranks = stats.rankdata(np.abs(left))
    observed = min(ranks[left > 0].sum(), ranks[left < 0].sum())
    signs = np.array(list(itertools.product((0, 1), repeat=len(left))))
    at_most = (signs @ ranks <= observed + 1e-9).mean()
    assert test.p == pytest.approx(min(1.0, 2 * at_most))
    assert test.least_p <= test.p + 1e-12


@few
@given(some_differences)
def test_the_shift_turns_with_the_sign_and_lies_in_its_interval(
    found: Sample,
) -> None:
    shift = paired.hodges_lehmann(found)
    assert shift == pytest.approx(float(np.median(walsh_by_hand(found))))
    assert paired.hodges_lehmann(-found) == pytest.approx(-shift)
    interval = paired.signed_rank_interval(found)
    if interval is not None:
        assert interval.low - 1e-9 <= shift <= interval.high + 1e-9
    assert paired.dominance(-found) == pytest.approx(-paired.dominance(found))


def test_dominance_by_hand() -> None:
    assert paired.dominance(np.array([1.0, 2.0, 0.0, -1.0, 5.0])) == pytest.approx((3 - 1) / 5)


def test_one_comparison_has_p_of_all_sign_flips() -> None:
    diffs = np.array([0.3, 1.1, -0.4, 0.9, 2.0])
    flips = np.array(list(itertools.product((1, -1), repeat=5)))
    share = float((np.abs((flips * diffs).sum(axis=1)) >= abs(diffs.sum()) - 1e-9).mean())
    assert paired.step_down([dict(enumerate(diffs))], seed=1) == pytest.approx([share])


def test_a_comparison_that_is_repeated_does_not_raise_p() -> None:
    clear, noise = dict(enumerate([1.0, 1.1, 0.9, 1.2, 0.8, 1.0])), dict(enumerate([1.0, -1.1, 0.9, -1.2, 0.8, 0.1]))
    alone = paired.step_down([clear, noise], seed=1)
    scaled = {block: 5 * difference for block, difference in clear.items()}
    assert paired.step_down([clear, noise, scaled, noise], seed=1) == pytest.approx([*alone, *alone])
    assert alone[0] == 2 / 2**6 < alone[1]


def test_comparisons_with_missing_blocks_and_without_a_difference() -> None:
    p = paired.step_down([{1: 1.0, 2: 1.0, 3: 1.1, 4: 0.9}, {2: 1.0, 3: 1.2}, {1: 0.0, 2: 0.0}, {}], seed=1)
    assert p[0] == 2 / 2**4
    assert p[0] <= p[1] < 1
    assert p[2:] == [1.0, 1.0]
    assert paired.step_down([{}, {}], seed=1) == [1.0, 1.0]


def test_with_many_blocks_signs_are_random_and_repeatable() -> None:
    rng = np.random.default_rng(3)
    family = [dict(enumerate(rng.normal(shift, 1.0, 30))) for shift in (0.9, 0.0)]
    first = paired.step_down(family, seed=7)
    assert first == paired.step_down(family, seed=7)
    assert first[0] < 0.01 < first[1]


@pytest.mark.parametrize("skewed", [False, True])
def test_false_differences_are_rare_in_a_whole_family(skewed: bool) -> None:
    rng, wrong, runs = np.random.default_rng(11), 0, 400
    for _ in range(runs):
        values = rng.lognormal(sigma=1, size=(8, 3, 4)) if skewed else rng.normal(size=(8, 3, 4))
        columns = [
            values[:, group, a] - values[:, group, b]
            for group in range(3)
            for a, b in itertools.combinations(range(4), 2)
        ]
        wrong += min(paired.step_down([dict(enumerate(column)) for column in columns], seed=1)) <= 0.05
    assert 0.01 * runs <= wrong <= 0.09 * runs


@pytest.mark.parametrize("blocks", [3, 4, 6])
def test_comparisons_of_few_blocks_do_not_hide_those_of_many(blocks: int) -> None:
    rng, found, runs = np.random.default_rng(12), 0, 60
    for _ in range(runs):
        clear = [dict(enumerate(rng.normal(2, 1, 10))) for _ in range(2)]
        small = [dict(enumerate(rng.normal(0, 1, blocks))) for _ in range(2)]
        found += max(paired.step_down([*clear, *small], seed=1)[:2]) <= 0.05
    assert found >= 0.8 * runs
