"""Distributions with weights, densities, and axes."""

from typing import Any

import matplotlib.figure
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.analysis.figures.shapes.cdf import density, thin_steps, weighted_cdf
from mplab.analysis.figures.shapes.common import Axis, network_colours, network_title

VALUES = st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 50)), min_size=1, max_size=60)


def array(*numbers: float) -> Any:
    return np.array(numbers, dtype=np.float64)


def test_each_value_bears_the_share_of_weight_at_or_below_it() -> None:
    x, y = weighted_cdf(array(5, 1, 5, 2), array(1, 4, 2, 1))
    assert x.tolist() == [1, 2, 5]
    assert y.tolist() == pytest.approx([0.5, 0.625, 1.0])


@given(VALUES)
def test_a_weight_is_worth_so_many_copies(pairs: list[tuple[float, int]]) -> None:
    values, weights = array(*(v for v, _ in pairs)), array(*(w for _, w in pairs))
    copies = np.repeat(values, weights.astype(int))
    x, y = weighted_cdf(values, weights)
    again, shares = weighted_cdf(copies, np.ones(copies.size))
    assert x.tolist() == again.tolist()
    assert y.tolist() == pytest.approx(shares.tolist())


@given(VALUES, st.integers(2, 30))
def test_thinning_keeps_both_ends_and_moves_no_step(pairs: list[tuple[float, int]], most: int) -> None:
    x, y = weighted_cdf(array(*(v for v, _ in pairs)), array(*(w for _, w in pairs)))
    kept_x, kept_y = thin_steps(x, y, most)
    assert kept_x.size <= most + 2
    assert (kept_x[0], kept_x[-1], kept_y[-1]) == (x[0], x[-1], y[-1])
    assert set(zip(kept_x, kept_y, strict=True)) <= set(zip(x, y, strict=True))


@pytest.mark.parametrize("log", [True, False])
def test_a_density_sums_up_to_one_and_peaks_where_the_weight_is(log: bool) -> None:
    middles, shares = density(array(1, 10, 100), array(1, 7, 2), log=log)
    assert shares.sum() == pytest.approx(1)
    assert middles[shares.argmax()] == pytest.approx(10, rel=0.25)


def test_a_density_of_one_value_is_one_class() -> None:
    _, shares = density(array(3, 3), array(1, 1), log=False)
    assert sorted(shares)[-1] == 1.0


@pytest.mark.parametrize(
    ("axis", "value", "text"),
    [
        (Axis("", "bytes"), 1500.0, "1.5 kB"),
        (Axis("", "bytes"), 2e6, "2 MB"),
        (Axis("", "bytes"), 1.0, "1 B"),
        (Axis("", "share"), 0.5, "50\N{NO-BREAK SPACE}%"),
        (Axis("", "ms"), 0.25, "0.25"),
        (Axis("", "s"), -2.0, "−2"),
        (Axis("", "s"), 20_000.0, "20\N{NARROW NO-BREAK SPACE}000"),
    ],
)
def test_axes_write_values_in_few_digits(axis: Axis, value: float, text: str) -> None:
    assert axis.text(value) == text


@pytest.mark.parametrize("limits", [(0.11, 0.35), (1.0, 90.0), (1.0, 1e7)])
def test_a_logarithmic_axis_of_any_width_has_labelled_ticks(limits: tuple[float, float]) -> None:
    figure = matplotlib.figure.Figure()
    axes = figure.subplots()
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    Axis("Duration", "s", "log").dress(axes, "x")
    ticks = [tick for tick in axes.get_xticks() if limits[0] <= tick <= limits[1]]
    assert 3 <= len(ticks) <= 9
    assert axes.get_xlabel() == "Duration (s), log scale"


def test_a_logarithmic_axis_of_nearly_equal_values_is_linear() -> None:
    axes = matplotlib.figure.Figure().subplots()
    axes.set_xlim(104, 116)
    Axis("Delay", "ms", "log").dress(axes, "x")
    assert (axes.get_xscale(), axes.get_xlabel()) == ("linear", "Delay (ms)")


def test_networks_have_the_same_look_everywhere() -> None:
    colours = network_colours(["vpn", "wifi", "starlink"])
    assert colours["wifi"] == network_colours([])["wifi"]
    assert len({colours[name] for name in ("wifi", "cellular", "vpn", "starlink")}) == 4
    assert [network_title(name) for name in ("wifi", "vpn", "")] == ["WiFi", "Vpn", "Other"]
