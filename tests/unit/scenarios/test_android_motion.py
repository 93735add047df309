"""Playing times, derived from looks at a player."""

from collections.abc import Mapping
from typing import Any

import pytest

from mplab.scenarios.base.android.motion import Motion, motion, seconds_of, stall_fields
from mplab.scenarios.base.sampling import Sampled, ScreenSample

EVERY_S = 0.25


def looks(*spells: tuple[float, Mapping[str, str]]) -> Sampled:
    """Return looks every 0.25 s; each spell has its length in s and the shown elements."""
    shown = [elements for length, elements in spells for _ in range(round(length / EVERY_S))]
    return Sampled(
        tuple(ScreenSample(100 + number * EVERY_S, 0.01, elements) for number, elements in enumerate(shown)), EVERY_S
    )


def positions(*seconds: int) -> Sampled:
    """Return looks at a clock every 0.25 s, for one second at each position."""
    return looks(*((1.0, {"position": f"{at // 60}:{at % 60:02}"}) for at in seconds))


WAITS: Mapping[str, str] = {"player": "", "loading": ""}
PLAYS: Mapping[str, str] = {"player": ""}


def times(found: Motion) -> Any:
    return [(stall.began - 100, None if stall.ended is None else stall.ended - 100) for stall in found.stalls]


def test_spinner_before_is_startup_and_after_is_a_stall() -> None:
    result = motion(looks((1.0, WAITS), (2.0, PLAYS), (1.5, WAITS), (1.0, PLAYS)), spinner=True)
    assert result.began == pytest.approx(100.875), "in the middle between two looks"
    assert times(result) == [(pytest.approx(2.875), pytest.approx(4.375))]
    assert (result.by, result.resolution_s) == ("loading", EVERY_S)
    assert result.played_s == pytest.approx(105.25 - 100.875 - 1.5)


def test_advertisement_is_waited_for() -> None:
    result = motion(looks((1.0, {"player": "", "skip ad": "Skip"}), (1.0, PLAYS)), spinner=True)
    assert result.began == pytest.approx(100.875)


def test_what_says_that_it_cannot_play_does_not_play() -> None:
    result = motion(looks((0.5, WAITS), (0.5, {"player": "", "problem": "No"})), spinner=True)
    assert result.began is None
    assert result.played_s == 0


def test_end_is_no_stall_and_a_stall_may_last_to_the_end() -> None:
    ended = motion(looks((1.0, PLAYS), (0.25, {"ended": "Replay", "loading": ""})), spinner=True)
    assert ended.stalls == ()
    still = motion(looks((1.0, PLAYS), (1.0, WAITS)), spinner=True)
    assert times(still) == [(pytest.approx(0.875), None)]
    assert stall_fields(still.stalls, still.until) == [
        {"at": pytest.approx(100.875), "duration_s": pytest.approx(0.875)}
    ]


def test_clock_that_moves_plays_from_a_second_before_its_first_step() -> None:
    result = motion(positions(0, 1, 2, 3, 4), spinner=False)
    assert result.began == pytest.approx(99.875)
    assert result.stalls == ()
    assert (result.by, result.resolution_s) == ("position", 1.0)


def test_clock_that_stands_is_a_stall() -> None:
    result = motion(positions(0, 1, 2, 2, 2, 2, 3, 4), spinner=False)
    assert times(result) == [(pytest.approx(2.875), pytest.approx(5.875))]


def test_clock_that_stands_to_the_end() -> None:
    result = motion(positions(0, 1, 2, 2, 2, 2), spinner=False)
    assert times(result) == [(pytest.approx(2.875), None)]


def test_next_track_begins_at_zero() -> None:
    assert motion(positions(57, 58, 59, 0, 1, 2), spinner=False).stalls == ()


def test_clock_that_never_moves_never_plays() -> None:
    result = motion(positions(0, 0, 0, 0), spinner=False)
    assert (result.began, result.stalls) == (None, ())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0:07", 7),
        ("1:02:03", 3723),
        ("0 minutes 7 seconds", 7),
        ("0 minutes 7 seconds of 1 minute 0 seconds", 7),
        ("", None),
        ("Loading", None),
        ("7", None),
    ],
)
def test_positions_as_apps_write_them(text: str, seconds: int | None) -> None:
    assert seconds_of(text) == seconds
