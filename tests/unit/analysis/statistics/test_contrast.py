"""Corrections, distributions and power, and a contrast that uses them all."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mplab.analysis.metric import Metric, Value
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.scoring import CellScores
from mplab.analysis.statistics.contrast import BCA, SIGNED_RANK, benjamini_hochberg, contrast, corrected, holm
from mplab.analysis.statistics.distribution import QUANTILES, kolmogorov_smirnov, quantile_shifts
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.paired import geometric_ratio, step_down
from mplab.analysis.statistics.power import needed_each, needed_for, needed_pairs
from mplab.analysis.statistics.summaries import summarise
from tests.unit.analysis.synthetic import MPTCP, Synthetic

# Benjamini & Hochberg 1995, §4: 15 hypotheses on thrombolytic treatments.
THROMBOLYSIS = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
    0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000,
]  # fmt: skip


def test_the_example_of_benjamini_and_hochberg() -> None:
    # Their procedure rejects four at 5 %; Bonferroni's and the stepwise family-wise procedures reject three.
    assert sum(p <= 0.05 for p in benjamini_hochberg(THROMBOLYSIS)) == 4
    assert sum(p <= 0.05 for p in holm(THROMBOLYSIS)) == 3


def test_holms_method_by_hand() -> None:
    # The example of Wikipedia's article on the Holm-Bonferroni method: the first and the last are rejected.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert benjamini_hochberg([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_corrections_never_make_smaller_and_keep_the_order(values: list[float]) -> None:
    strict, lenient = holm(values), benjamini_hochberg(values)
    order = np.argsort(values, kind="stable")
    for raw, strict_p, lenient_p in zip(values, strict, lenient, strict=True):
        assert raw - 1e-12 <= lenient_p <= strict_p + 1e-12
        assert strict_p <= 1
    assert all(a <= b + 1e-12 for a, b in zip(np.array(strict)[order], np.array(strict)[order][1:], strict=False))


def test_kolmogorov_smirnov_is_scipys() -> None:
    a, b = [1.0, 2.0, 3.0, 4.0], [3.5, 4.5, 5.5, 6.5]
    assert kolmogorov_smirnov(a, b) == pytest.approx((0.75, stats.ks_2samp(a, b).pvalue))
    assert kolmogorov_smirnov([1.0, 2.0], b) is None
    assert kolmogorov_smirnov([2.0] * 5, [2.0] * 5) == (0.0, 1.0)


def test_the_tail_alone_is_told_from_the_whole() -> None:
    base = [float(n) for n in range(1, 21)]
    slower = [value + 2 for value in base]
    tail = [value if value < 15 else value * 2 for value in base]
    for at in quantile_shifts(slower, base, seed=1):
        assert at.shift == pytest.approx(2.0)
        assert at.interval is not None
        assert 2.0 == pytest.approx(at.interval.low) == pytest.approx(at.interval.high)
    shifts = {at.quantile: at for at in quantile_shifts(tail, base, seed=1)}
    assert tuple(shifts) == QUANTILES
    assert shifts[0.1].shift == shifts[0.5].shift == 0
    assert shifts[0.9].shift > 10
    low = shifts[0.9].interval
    assert low is not None
    assert low.low > 0


def test_few_pairs_have_no_intervals_of_quantiles() -> None:
    assert quantile_shifts([1.0, 2.0], [1.0, 2.0], seed=1) == ()
    assert {at.interval for at in quantile_shifts([1.0] * 9, [2.0] * 9, seed=1)} == {None}


def test_noethers_sample_size_as_in_statpsych() -> None:
    # R's statpsych, size.test.mann(.05, .90, .3), after Noether 1987: 44 in each group.
    assert needed_for(0.3, level=0.05, power=0.9) == 44
    assert needed_for(0.7, level=0.05, power=0.9) == 44
    assert needed_for(0.5) is None


def test_so_many_pairs_see_the_effect_four_times_out_of_five() -> None:
    # Of normal differences of mean 0.5 and sd 1, P(d_i + d_j > 0) = Φ(0.5 · √2).
    rng = np.random.default_rng(1)
    needed = needed_pairs(rng.normal(0.5, 1.0, 1000))
    assert needed is not None
    seen = [stats.wilcoxon(rng.normal(0.5, 1.0, needed)).pvalue < 0.05 for _ in range(600)]
    assert 0.72 < np.mean(seen) < 0.92


def test_so_many_values_on_each_side_see_the_effect_four_times_out_of_five() -> None:
    rng = np.random.default_rng(2)
    needed = needed_each(rng.normal(0.8, 1.0, 400), rng.normal(0.0, 1.0, 400))
    assert needed is not None
    seen = [
        stats.mannwhitneyu(rng.normal(0.8, 1.0, needed), rng.normal(0.0, 1.0, needed)).pvalue < 0.05 for _ in range(600)
    ]
    assert 0.72 < np.mean(seen) < 0.92


def test_what_no_test_can_say_is_not_promised() -> None:
    assert needed_pairs(np.array([1.0, 1.0, 1.0])) == 11
    assert needed_pairs(np.array([1.0])) is None
    assert needed_pairs(np.array([0.0, 0.0, 0.0])) is None
    assert needed_pairs(np.array([-1.0, 1.0])) is None


def test_a_contrast_uses_the_blocks_that_both_have() -> None:
    result = contrast(("mptcp", "sptcp-lte"), {1: 1.0, 2: 2.0, 4: 9.0}, {2: 5.0, 1: 3.0, 3: 7.0}, seed=1)
    assert result is not None
    assert result.pairs == 2
    assert result.shift == pytest.approx(-2.5)
    assert (result.interval, result.p, result.interval_method) == (None, None, "")
    assert result.dominance == -1
    assert contrast(("a", "b"), {1: 1.0}, {2: 1.0}, seed=1) is None


def test_which_interval_is_shown_depends_on_the_number_of_blocks() -> None:
    own = {block: 1.0 + block / 10 for block in range(1, 9)}
    other = {block: 2.0 + block / 7 for block in own}
    eight = contrast(("a", "b"), own, other, seed=1)
    five = contrast(("a", "b"), {b: own[b] for b in range(1, 6)}, other, seed=1)
    assert eight is not None
    assert five is not None
    assert (eight.interval_method, eight.interval) == (SIGNED_RANK, eight.signed_rank)
    assert (five.interval_method, five.interval) == (BCA, five.bootstrap)
    assert five.test is not None
    assert five.p == five.test.least_p == pytest.approx(0.0625)


def test_contrasts_are_corrected_together_and_those_without_a_test_are_left_alone() -> None:
    def one(blocks: int, seed: int) -> object:
        rng = np.random.default_rng(seed)
        own = {block: float(rng.normal(1, 1)) for block in range(blocks)}
        return contrast(("a", "b"), own, dict.fromkeys(range(blocks), 0.0), seed=1)

    family = corrected([one(10, 1), one(2, 2), one(10, 3)], seed=1)  # type: ignore[list-item]
    assert (family[1].p_family, family[1].p_bh) == (None, None)
    joint = step_down([family[0].differences, family[2].differences], seed=1)
    assert [family[0].p_family, family[2].p_family] == [
        max(c.p or 0.0, p) for c, p in zip((family[0], family[2]), joint, strict=True)
    ]


def test_the_order_of_blocks_pairs_the_values(synthetic: Callable[..., Synthetic]) -> None:
    """Make blocks differ by much more than transports do, so that only pairing detects the difference."""
    run = read_run(synthetic(repetitions=8).build())
    slower = {"sptcp-wifi": 0.2, "sptcp-lte": 0.1, "mptcp": 0.0}
    time = Metric("time", "Time", "s", "lower", headline=True)
    flat = Metric("flows", "Flows", "", "neither")
    scores = []
    for cell in run.cells:
        assert cell.spec is not None
        value = 10.0 * cell.spec.repetition + slower[cell.spec.transport] + 0.001 * cell.spec.index
        scores.append(CellScores(cell.id, (Value("time", value), Value("flows", 1.0))))
    times, flows = summarise(run, {"files": (time, flat)}, scores)
    assert flows.contrasts == ()
    assert [(c.transport, c.reference) for c in times.contrasts] == [
        ("sptcp-wifi", "sptcp-lte"),
        ("mptcp", "sptcp-lte"),
    ]
    multipath = times.against_baseline("mptcp")
    assert multipath is not None
    assert multipath.p == pytest.approx(2 / 2**8)
    assert multipath.p_family == pytest.approx(2 / 2**8), "differences of both contrasts have one sign in each block"
    compared = times.of("mptcp")
    assert compared is not None
    assert compared.comparison is not None
    assert compared.comparison.p is not None
    assert compared.comparison.p > 0.5


def test_multipath_transports_are_compared_with_each_other(synthetic: Callable[..., Synthetic]) -> None:
    other = {**MPTCP, "label": "mpflex", "name": "mpflex"}
    run = read_run(synthetic(repetitions=3, transports=(MPTCP, other)).build())
    scores = [CellScores(cell.id, (Value("time", float(number)),)) for number, cell in enumerate(run.cells)]
    (group,) = summarise(run, {"files": (Metric("time", "Time", "s", "lower"),)}, scores)
    assert [(c.transport, c.reference) for c in group.contrasts] == [("mpflex", "mptcp")]


def test_the_ratio_is_the_geometric_mean_of_the_blocks_ratios() -> None:
    # Ratios 2, 4, 8: logarithms (1, 2, 3) · log 2, mean 2 log 2, standard deviation log 2; t(0.975, 2) = 4.302653.
    result = contrast(("a", "b"), {1: 2.0, 2: 12.0, 3: 40.0}, {1: 1.0, 2: 3.0, 3: 5.0}, seed=1)
    assert result is not None
    assert result.ratio is not None
    mean, interval = result.ratio
    assert interval is not None
    assert mean == pytest.approx(4.0)
    half = 4.302653 / 3**0.5
    assert (interval.low, interval.high) == pytest.approx((2 ** (2 - half), 2 ** (2 + half)), rel=1e-6)


def test_the_ratio_does_not_depend_on_which_one_is_the_reference() -> None:
    rng = np.random.default_rng(3)
    own, other = rng.lognormal(0.2, 0.3, 9).tolist(), rng.lognormal(0.0, 0.3, 9).tolist()
    forth, back = geometric_ratio(own, other), geometric_ratio(other, own)
    assert forth is not None
    assert back is not None
    assert forth[1] is not None
    assert back[1] is not None
    assert (forth[0] * back[0], forth[1].low * back[1].high) == pytest.approx((1.0, 1.0))
    expected = stats.ttest_rel(np.log(own), np.log(other)).confidence_interval()
    assert (forth[1].low, forth[1].high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)), rel=1e-6)


def test_when_there_is_no_ratio() -> None:
    assert geometric_ratio([1.0, 0.0, 1.0], [1.0, 1.0, 1.0]) is None
    assert geometric_ratio([1.0], [-1.0]) is None
    assert geometric_ratio([], []) is None
    assert geometric_ratio([1e300, 1.0, 1.0], [1e-300, 1.0, 1.0]) is None
    two = geometric_ratio([3.0, 3.0], [1.0, 1.0])
    assert two is not None
    assert two[0] == pytest.approx(3.0)
    assert two[1] is None


def test_equal_ratios_have_an_interval_without_width() -> None:
    ratio = geometric_ratio([0.3, 0.6, 0.9], [0.1, 0.2, 0.3])
    assert ratio is not None
    assert ratio[0] == pytest.approx(3.0)
    assert ratio[1] == Interval(ratio[0], ratio[0])


def test_the_interval_of_the_ratio_covers_the_truth() -> None:
    rng = np.random.default_rng(4)
    covered = 0
    for _ in range(400):
        ratio = geometric_ratio(rng.lognormal(0.5, 0.4, 6).tolist(), rng.lognormal(0.0, 0.4, 6).tolist())
        assert ratio is not None
        assert ratio[1] is not None
        covered += float(np.exp(0.5)) in ratio[1]
    assert 0.92 < covered / 400 < 0.98
