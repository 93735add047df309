"""Verdicts on estimates: each row of the table in `mplab.analysis.verdicts.judging`."""

import math

import pytest

from mplab.analysis.statistics.effects import Interval
from mplab.analysis.verdicts.judging import (
    ClaimedBounds,
    bounds_of,
    judge_crossover,
    judge_effect,
    judge_equivalence,
    judge_value,
)
from mplab.format.claim import ClaimedRange

GAIN = ClaimedBounds(11.0, 49.0, smallest=2.0)
NEVER_WORSE = ClaimedBounds(0.0, math.inf, smallest=2.0)


@pytest.mark.parametrize(
    ("estimate", "ends", "verdict", "certain"),
    [
        (20.0, (15.0, 30.0), "as claimed", True),
        (20.0, (5.0, 30.0), "as claimed", False),
        (20.0, None, "as claimed", False),
        (60.0, (55.0, 65.0), "same direction", True),
        (5.0, (3.0, 8.0), "same direction", True),
        (5.0, (3.0, 12.0), "same direction", False),
        (5.0, (-3.0, 9.0), "not seen", True),
        (5.0, (-3.0, 15.0), "not seen", False),
        (1.0, (0.5, 1.5), "not seen", True),
        (-1.0, (-1.5, -0.5), "not seen", True),
        (-20.0, (-30.0, -10.0), "contradicted", True),
        (-20.0, (-50.0, 5.0), "not seen", True),
        (-20.0, None, "not seen", False),
    ],
)
def test_an_effect_with_a_direction(
    estimate: float, ends: tuple[float, float] | None, verdict: str, certain: bool
) -> None:
    assert judge_effect(estimate, Interval(*ends) if ends else None, GAIN) == (verdict, certain)
    mirrored = Interval(-ends[1], -ends[0]) if ends else None
    assert judge_effect(-estimate, mirrored, ClaimedBounds(-49.0, -11.0, smallest=2.0)) == (verdict, certain)


@pytest.mark.parametrize(
    ("estimate", "ends", "verdict"),
    [
        (0.0, (0.0, 0.0), "as claimed"),
        (-1.0, (-1.5, -0.5), "not seen"),
        (-5.0, (-8.0, 1.0), "not seen"),
        (-5.0, (-8.0, -3.0), "contradicted"),
    ],
)
def test_never_worse(estimate: float, ends: tuple[float, float], verdict: str) -> None:
    assert judge_effect(estimate, Interval(*ends), NEVER_WORSE)[0] == verdict


@pytest.mark.parametrize(
    ("estimate", "ends", "verdict", "certain"),
    [
        (31.0, (28.0, 36.0), "as claimed", True),
        (31.0, (5.0, 60.0), "as claimed", False),
        (31.0, (-5.0, 60.0), "not seen", False),
        (31.0, (30.0, 33.0), "same direction", True),
    ],
)
def test_one_number_is_met_if_the_interval_contains_it(
    estimate: float, ends: tuple[float, float], verdict: str, certain: bool
) -> None:
    bounds = bounds_of(ClaimedRange(33.5, 34.5, "%", 34.0), 2.0)
    assert judge_effect(estimate, Interval(*ends), bounds) == (verdict, certain)


def test_a_direction_without_a_number_ends_at_the_smallest_effect() -> None:
    assert bounds_of(ClaimedRange(word="better"), 2.0) == ClaimedBounds(2.0, math.inf, smallest=2.0)
    assert bounds_of(ClaimedRange(word="falling"), 2.0) == ClaimedBounds(-math.inf, -2.0, smallest=2.0)


@pytest.mark.parametrize(
    ("estimate", "ends", "share", "verdict", "certain"),
    [
        (12.0, (11.0, 12.5), False, "as claimed", True),
        (12.0, (9.0, 12.5), False, "as claimed", False),
        (9.0, (8.0, 11.0), False, "not seen", False),
        (9.0, (8.0, 9.5), False, "contradicted", True),
        (9.0, None, False, "not seen", False),
        (40.0, (38.0, 42.0), True, "same direction", True),
        (40.0, (38.0, 52.0), True, "same direction", False),
        (70.0, (68.0, 72.0), True, "contradicted", True),
    ],
)
def test_a_value(estimate: float, ends: tuple[float, float] | None, share: bool, verdict: str, certain: bool) -> None:
    interval = Interval(*ends) if ends else None
    assert judge_value(estimate, interval, ClaimedBounds(10.0, 13.0), share=share) == (verdict, certain)


@pytest.mark.parametrize(
    ("estimate", "ends", "verdict", "certain"),
    [
        (1.0, (-2.0, 4.0), "as claimed", True),
        (1.0, (-2.0, 6.0), "as claimed", False),
        (6.0, (4.0, 8.0), "not seen", False),
        (8.0, (6.0, 9.0), "contradicted", True),
    ],
)
def test_no_difference(estimate: float, ends: tuple[float, float], verdict: str, certain: bool) -> None:
    assert judge_equivalence(estimate, Interval(*ends), ClaimedBounds(-5.0, 5.0)) == (verdict, certain)


@pytest.mark.parametrize(
    ("position", "ends", "opposite", "verdict", "certain"),
    [
        (6.5, (6.2, 6.9), False, "as claimed", True),
        (6.5, (6.2, math.inf), False, "as claimed", False),
        (9.0, (8.0, 9.5), False, "same direction", True),
        (None, (math.inf, math.inf), False, "not seen", True),
        (None, (5.0, math.inf), False, "not seen", False),
        (None, (-math.inf, -math.inf), True, "contradicted", True),
    ],
)
def test_a_crossover(
    position: float | None, ends: tuple[float, float], opposite: bool, verdict: str, certain: bool
) -> None:
    assert judge_crossover(position, Interval(*ends), ClaimedBounds(6.0, 7.0), opposite=opposite) == (verdict, certain)
