"""Which transport is better, equivalent ones, and values that show neither: the rule, and its error rates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mplab.analysis.metric import Metric
from mplab.analysis.statistics.contrast import Contrast, corrected
from mplab.analysis.statistics.equivalence import equivalence_interval, needed_for_equivalence
from mplab.analysis.statistics.paired import (
    differences,
    hodges_lehmann,
    signed_rank_interval,
    signed_rank_test,
)
from mplab.analysis.statistics.power import needed_pairs
from mplab.analysis.statistics.summaries import CellValue, Group, Series, without_cells
from mplab.analysis.verdicts.findings import PairFinding, find, smallest_effect
from mplab.format.experiment import SmallestEffect, TransportRecord

TIME = Metric("time", "Time", "s", "lower", headline=True)
RATE = Metric("rate", "Rate", "Mbit/s", "higher", headline=True)
PATHS = {"wifi": ("wlan0",), "lte": ("rmnet0",), "mptcp": ("wlan0", "rmnet0"), "other": ("wlan0", "rmnet0")}
EVERYTHING_MATTERS = SmallestEffect(0.0, 0.0)
DEFAULT = SmallestEffect()


def compared(sample: tuple[str, Sequence[float]], reference: tuple[str, Sequence[float]]) -> Contrast:
    """Return the contrast with the fields that a verdict needs, without the slow resampling."""
    diffs = differences(sample[1], reference[1])
    return Contrast(
        transport=sample[0],
        reference=reference[0],
        pairs=len(diffs),
        shift=hodges_lehmann(diffs),
        signed_rank=signed_rank_interval(diffs),
        bootstrap=None,
        test=signed_rank_test(diffs),
        dominance=0.0,
        cliffs_delta=0.0,
        ks=None,
        quantiles=(),
        needed=needed_pairs(diffs),
        differences=dict(enumerate(map(float, diffs), 1)),
        ratio=None,
    )


def group_of(values: Mapping[str, Sequence[float]], metric: Metric = TIME, name: str = "") -> Group:
    """Return a group with these values; p is corrected for the contrasts of this group only."""
    sign = 1 if metric.better == "lower" else -1
    series = tuple(
        Series(
            TransportRecord(label, label, title=label, paths=PATHS[label]),
            len(numbers),
            tuple(CellValue(f"{label}-{r}", r, value, r) for r, value in enumerate(numbers, 1)),
            None,
        )
        for label, numbers in values.items()
    )
    singles = [s for s in series if s.transport.single_path]
    base = min(singles, key=lambda s: sign * float(np.median(s.numbers)), default=None)
    pairs = [] if base is None else [(s, base) for s in series if s is not base]
    contrasts = [compared((s.transport.label, s.numbers), (b.transport.label, b.numbers)) for s, b in pairs]
    labels = (("size", name),) if name else ()
    baseline = base.transport.label if base else None
    return Group("files", "baseline", metric, labels, series, None, baseline, tuple(corrected(contrasts, 1)))


def together(groups: Sequence[Group]) -> list[Group]:
    """Return the groups with p corrected for all of their contrasts."""
    family = iter(corrected([contrast for group in groups for contrast in group.contrasts], 1))
    return [replace(group, contrasts=tuple(next(family) for _ in group.contrasts)) for group in groups]


def finding_of(
    values: Mapping[str, Sequence[float]], smallest: SmallestEffect = DEFAULT, metric: Metric = TIME
) -> PairFinding:
    (finding,) = find([group_of(values, metric)], smallest).values()
    return finding


def around(middle: float, n: int, width: float = 0.001) -> list[float]:
    return [middle + width * (index % 5 + index / 100) for index in range(n)]


def test_a_large_difference_has_a_winner() -> None:
    finding = finding_of({"wifi": around(1.2, 8, 0.01), "mptcp": around(0.8, 8)})
    assert (finding.verdict, finding.winner and finding.winner.transport.label) == ("better", "mptcp")
    assert finding.relative == pytest.approx(0.34, abs=0.02)


def test_the_single_path_can_be_the_winner() -> None:
    finding = finding_of({"wifi": around(8, 8), "mptcp": around(6, 8)}, metric=RATE)
    assert finding.winner is finding.reference
    assert finding.verdict == "better"
    assert finding.relative == pytest.approx(-0.25, abs=0.01)


def test_with_few_blocks_nobody_wins_however_clear_it_looks() -> None:
    finding = finding_of({"wifi": around(1.2, 5, 0.01), "mptcp": around(0.4, 5)})
    assert (finding.verdict, finding.winner, finding.needed) == ("too few", None, 6)


def test_six_blocks_show_clear_effects_among_many_comparisons() -> None:
    rng = np.random.default_rng(5)
    clear = [
        group_of({"wifi": list(rng.normal(1.2, 0.01, 6)), "mptcp": list(rng.normal(0.8, 0.01, 6))}, name=str(k))
        for k in range(6)
    ]
    noise = [
        group_of({"wifi": list(rng.normal(1, 0.2, 6)), "mptcp": list(rng.normal(1, 0.2, 6))}, name=str(k))
        for k in range(6, 12)
    ]
    findings = list(find(together([*clear, *noise]), DEFAULT).values())
    assert [finding.verdict for finding in findings] == ["better"] * 6 + ["undecided"] * 6
    assert {finding.p for finding in findings[:6]} == {2 / 2**6}


def test_a_difference_below_the_smallest_effect_is_equivalent_even_if_significant() -> None:
    values = {"wifi": around(0.280, 8, 1e-5), "mptcp": around(0.282, 8)}
    assert finding_of(values).verdict == "equivalent"
    assert finding_of(values, EVERYTHING_MATTERS).verdict == "better"


def test_a_significant_difference_that_may_be_too_small_is_undecided() -> None:
    later = [0.001, 0.002, 0.003, 0.004, 0.0045, 0.005, 0.0055, 0.006, 0.007, 0.009]
    finding = finding_of({"wifi": [0.1] * 10, "mptcp": [0.1 + late for late in later]})
    assert finding.p is not None
    assert finding.p < 0.05
    assert (finding.verdict, finding.winner) == ("undecided", None)
    assert finding.needed is not None
    assert finding.needed > 10


def test_the_smallest_effect_is_the_larger_of_share_and_time() -> None:
    assert smallest_effect(TIME, 0.1, DEFAULT) == 0.005
    assert smallest_effect(TIME, 10.0, DEFAULT) == pytest.approx(0.2)
    assert smallest_effect(replace(TIME, unit="ms"), 100.0, DEFAULT) == pytest.approx(5.0)
    assert smallest_effect(RATE, 10.0, DEFAULT) == pytest.approx(0.2), "5 ms are no rate"


def test_two_of_a_kind_are_compared_with_each_other() -> None:
    finding = finding_of({"wifi": around(1.0, 8), "lte": around(1.5, 8)})
    assert (finding.sample.transport.label, finding.reference.transport.label) == ("wifi", "lte")
    assert finding.winner is finding.sample
    assert finding.shift is not None
    assert finding.shift < 0
    assert finding.shift_interval is not None
    assert finding.shift_interval.high < 0, "of the same direction as the shift"


def test_one_transport_alone_and_metrics_without_a_better_side_have_no_finding() -> None:
    assert find([group_of({"wifi": around(1.0, 8)})], DEFAULT) == {}
    neither = replace(TIME, better="neither")
    assert find([group_of({"wifi": around(1.0, 8), "mptcp": around(2.0, 8)}, neither)], DEFAULT) == {}


def test_without_common_blocks_there_is_no_verdict() -> None:
    group = group_of({"wifi": around(1.0, 3), "mptcp": around(2.0, 3)})
    moved = tuple(replace(value, block=value.block + 9) for value in group.series[1].values)
    apart = replace(group, series=(group.series[0], replace(group.series[1], values=moved)), contrasts=())
    (finding,) = find([apart], DEFAULT).values()
    assert (finding.verdict, finding.pairs, finding.shift) == ("too few", 0, None)


def test_cells_can_be_left_out_of_a_verdict() -> None:
    fast = [0.5 + 0.01 * r for r in range(6)]
    group = group_of({"wifi": [1.0 + 0.01 * r for r in range(8)], "mptcp": [*fast, 1.3, 1.4]})

    def without(*cells: str) -> list[Any]:
        found = find(without_cells([group], cells, 1), DEFAULT).values()
        return [(finding.verdict, finding.pairs, finding.relative) for finding in found]

    assert without() == [("undecided", 8, pytest.approx(0.483, abs=0.001))]
    assert without("mptcp-7", "mptcp-8") == [("better", 6, pytest.approx(0.493, abs=0.001))]
    assert without("mptcp-5", "mptcp-6", "mptcp-7", "mptcp-8")[0][0] == "too few"
    assert without(*(f"mptcp-{r}" for r in range(1, 9))) == []


def runs(seed: int, count: int, n: int, *, sd: float, shift: float, groups: int) -> Iterator[list[PairFinding]]:
    """Yield the findings of simulated runs: two equal single paths, and Multipath TCP that takes ``shift`` longer."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        drawn = [rng.normal(1.0, sd, (3, n)) + np.array([[0.0], [0.0], [shift]]) for _ in range(groups)]
        made = [
            group_of(dict(zip(("wifi", "lte", "mptcp"), map(list, values), strict=True)), name=str(k))
            for k, values in enumerate(drawn)
        ]
        yield list(find(together(made), SmallestEffect(2.0, 0.0)).values())


def test_a_winner_among_equal_transports_is_rare_in_the_whole_run() -> None:
    wrong = sum(any(f.verdict == "better" for f in found) for found in runs(1, 150, 9, sd=0.05, shift=0.0, groups=3))
    assert wrong <= 0.1 * 150


def test_a_difference_as_large_as_the_smallest_effect_is_rarely_called_equivalent() -> None:
    wrong = sum(f.verdict == "equivalent" for found in runs(2, 300, 10, sd=0.01, shift=0.02, groups=1) for f in found)
    assert wrong <= 0.1 * 300


def test_true_differences_and_true_equality_are_found() -> None:
    better = [f.winner for found in runs(3, 40, 10, sd=0.03, shift=-0.2, groups=1) for f in found]
    assert sum(winner is not None and winner.transport.label == "mptcp" for winner in better) >= 36
    same = [f.verdict for found in runs(4, 40, 12, sd=0.005, shift=0.0, groups=1) for f in found]
    assert same.count("equivalent") >= 36


def test_the_interval_of_equivalence_needs_five_pairs_and_is_narrower() -> None:
    diffs = np.array([0.1, -0.3, 0.25, 0.4, -0.15, 0.05, 0.2])
    assert equivalence_interval(diffs[:4]) is None
    assert equivalence_interval(diffs[:5]) is not None
    wide, narrow = signed_rank_interval(diffs), equivalence_interval(diffs)
    assert wide is not None
    assert narrow is not None
    assert wide.low <= narrow.low <= narrow.high <= wide.high
    assert narrow != wide


def test_the_number_of_blocks_for_equivalence_grows_as_the_room_shrinks() -> None:
    diffs = np.array([0.001, -0.003, 0.0025, 0.004, -0.0015, 0.0005, 0.002])
    wide, narrow = needed_for_equivalence(diffs, 0.05), needed_for_equivalence(diffs, 0.0025)
    assert wide == 5
    assert narrow is not None
    assert narrow > len(diffs)
    assert needed_for_equivalence(diffs, 0.0005) is None, "the observed shift is larger"
