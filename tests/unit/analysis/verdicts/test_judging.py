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
from mplab.format.claim import Claim, ClaimedRange, ClaimKind, ClaimWord
from mplab.format.experiment import SmallestEffect
from mplab.userfiles.experiments.claims import parse_gain, parse_share, parse_value_range

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
        (32.0, (31.0, 36.0), "as claimed", True),
        (32.0, (5.0, 60.0), "as claimed", False),
        (5.0, (0.4, 78.0), "same direction", False),
        (25.0, (-5.0, 60.0), "not seen", False),
        (27.0, (25.0, 30.0), "same direction", True),
    ],
)
def test_one_number_is_judged_like_a_range(
    estimate: float, ends: tuple[float, float], verdict: str, certain: bool
) -> None:
    bounds = bounds_of(claim("34 %"), SmallestEffect(), 2.0)
    assert judge_effect(estimate, Interval(*ends), bounds) == (verdict, certain)


def claim(number: str, kind: ClaimKind = "gain") -> Claim:
    parse = {"gain": parse_gain, "share": parse_share, "value": parse_value_range}[kind]
    return Claim(text="one number", kind=kind, claimed=parse(number))


@pytest.mark.parametrize(
    ("number", "kind", "ends"),
    [
        ("34 %", "gain", (30.6, 37.4)),
        ("-5.4 %", "gain", (-7.4, -3.4)),
        ("3 %", "gain", (1.5, 4.5)),
        ("0 %", "gain", (-2, 2)),
        ("76 %", "share", (68.4, 83.6)),
        ("1.14 %", "share", (1.026, 1.254)),
        ("0 %", "share", (-1, 1)),
        ("100 %", "share", (99, 101)),
        ("133 ms", "value", (119.7, 146.3)),
        ("20 ms", "value", (15, 25)),
        ("6 kB", "value", (5.4, 6.6)),
        ("4 kB", "value", (3.5, 4.5)),
    ],
)
def test_one_number_has_a_tolerance(number: str, kind: ClaimKind, ends: tuple[float, float]) -> None:
    """10 %, the smallest effect (2 %, 5 ms), or half of the last digit; at most half of the number."""
    bounds = bounds_of(claim(number, kind), SmallestEffect())
    assert (bounds.low, bounds.high) == pytest.approx(ends)


@pytest.mark.parametrize(
    ("number", "estimate", "ends", "verdict", "certain"),
    [
        ("100 %", 60.0, (20.0, 99.9), "not seen", False),
        ("100 %", 99.5, (99.2, 100.0), "as claimed", True),
        ("0 %", 0.0, (0.0, 0.3), "as claimed", True),
        ("0 %", 48.0, (47.0, 49.0), "contradicted", True),
        ("1 %", 40.0, (38.0, 42.0), "contradicted", True),
    ],
)
def test_a_share(number: str, estimate: float, ends: tuple[float, float], verdict: str, certain: bool) -> None:
    bounds = bounds_of(claim(number, "share"), SmallestEffect())
    assert judge_value(estimate, Interval(*ends), bounds) == (verdict, certain)


@pytest.mark.parametrize(("estimate", "verdict"), [(0.1, "not seen"), (5.0, "same direction"), (-20.0, "not seen")])
def test_without_an_interval_the_smallest_effect_counts(estimate: float, verdict: str) -> None:
    assert judge_effect(estimate, None, GAIN) == (verdict, False)


@pytest.mark.parametrize(("word", "low", "high"), [("better", 2.0, math.inf), ("falling", -math.inf, -2.0)])
def test_a_direction_without_a_number_ends_at_the_smallest_effect(word: ClaimWord, low: float, high: float) -> None:
    bounds = bounds_of(Claim(text="a word", claimed=ClaimedRange(word=word)), SmallestEffect(), 2.0)
    assert bounds == ClaimedBounds(low, high, smallest=2.0)


@pytest.mark.parametrize(
    ("estimate", "ends", "verdict", "certain"),
    [
        (12.0, (11.0, 12.5), "as claimed", True),
        (12.0, (9.0, 12.5), "as claimed", False),
        (9.0, (8.0, 11.0), "not seen", False),
        (9.0, (8.0, 9.5), "contradicted", True),
        (9.0, None, "not seen", False),
    ],
)
def test_a_value(estimate: float, ends: tuple[float, float] | None, verdict: str, certain: bool) -> None:
    interval = Interval(*ends) if ends else None
    assert judge_value(estimate, interval, ClaimedBounds(10.0, 13.0)) == (verdict, certain)


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
