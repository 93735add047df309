"""Change points of a level: a published series, seeded noise, and series without a change."""

import numpy as np
import pytest

from mplab.analysis.statistics.changepoint import FEWEST_RUNS, LEVEL, change_points

# Annual flow of the Nile at Aswan, 10⁸ m³, 1871 to 1970: Cobb 1978, Biometrika 65, 243-251; R's dataset Nile.
NILE = """
1120 1160 963 1210 1160 1160 813 1230 1370 1140 995 935 1110 994 1020 960 1180 799 958 1140 1100 1210 1150 1250 1260
1220 1030 1100 774 840 874 694 940 833 701 916 692 1020 1050 969 831 726 456 824 702 1120 1100 832 764 821 768 845 864
862 698 845 744 796 1040 759 781 865 845 944 984 897 822 1010 771 676 649 846 812 742 801 1040 860 874 848 890 744 749
838 1050 918 986 797 923 975 815 1020 906 901 1170 912 746 919 718 714 740
"""


def test_the_nile_changed_after_1898() -> None:
    flow = [float(word) for word in NILE.split()]
    assert len(flow) == 100
    (change,) = change_points(flow, seed=1)
    assert 1871 + change.index == 1899, "the last year of the old level is 1898 (Cobb 1978)"
    assert change.before == pytest.approx(np.median(flow[:28]))
    assert change.after == pytest.approx(np.median(flow[28:]))
    assert change.p <= 0.001


def test_two_changes_are_found_in_their_order() -> None:
    rng = np.random.default_rng(3)
    series = np.concatenate([rng.normal(10, 0.3, 12), rng.normal(12, 0.3, 12), rng.normal(9, 0.3, 12)])
    changes = change_points(series.tolist(), seed=1)
    assert [change.index for change in changes] == [12, 24]
    assert changes[0].after == changes[1].before


def test_noise_alone_seldom_looks_like_a_change() -> None:
    rng = np.random.default_rng(4)
    false_alarms = sum(bool(change_points(rng.normal(1, 0.1, 20).tolist(), seed=n)) for n in range(200))
    assert false_alarms <= 200 * LEVEL * 4


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0, 3.0], [5.0] * 20, [1.0, 1.0, 9.0, 9.0]])
def test_what_is_constant_or_short_has_no_change(values: list[float]) -> None:
    assert change_points(values, seed=1) == []


def test_one_bad_night_is_no_change() -> None:
    series = [1.0 + 0.01 * (n % 3) for n in range(20)]
    series[11] = 3.0
    assert change_points(series, seed=1) == []


def test_the_same_each_time() -> None:
    series = np.random.default_rng(9).normal(size=30).cumsum().tolist()
    assert change_points(series, seed=5) == change_points(series, seed=5)


def test_separate_halves_of_fewer_runs_than_needed_are_no_change() -> None:
    for count in range(4, FEWEST_RUNS):
        halves = [1.0 + n / 1e3 for n in range(count // 2)] + [9.0 + n / 1e3 for n in range(count - count // 2)]
        assert change_points(halves, seed=1) == []
    halves = [1.0 + n / 1e3 for n in range(FEWEST_RUNS // 2)] + [9.0 + n / 1e3 for n in range(FEWEST_RUNS // 2)]
    (change,) = change_points(halves, seed=1)
    assert (change.n_before, change.n_after) == (5, 5)
    assert change.statistic == pytest.approx(3.0, abs=0.01)


def test_a_clear_change_in_few_runs_does_not_depend_on_the_seed() -> None:
    halves = [1.0 + n / 1e3 for n in range(5)] + [9.0 + n / 1e3 for n in range(5)]
    assert sum(len(change_points(halves, seed=seed)) for seed in range(40)) >= 38
