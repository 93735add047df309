"""Rebuffering that is detected by looks at a screen, and its time resolution."""

import time

import pytest

from mplab.base.errors import StepError
from mplab.format.selector import Selector
from mplab.scenarios.base.sampling import Sampled, ScreenSample, sample


def looks(text: str, every_s: float = 0.5) -> Sampled:
    """Return looks from the letters ``w`` (waits), ``p`` (plays) and ``.`` (neither)."""
    shown = {"w": {"loading": ""}, "p": {"position": "0:01"}, ".": {}}
    return Sampled(tuple(ScreenSample(100 + every_s * i, 0.1, shown[letter]) for i, letter in enumerate(text)), every_s)


def test_wait_before_the_start_is_no_stall() -> None:
    fields = looks("wwwwppppwwpp").fields("loading")
    assert fields["startup_s"] == 1.75
    assert fields["stalls"] == [{"at": 103.75, "duration_s": 1.0}]
    assert (fields["every_s"], fields["resolution_s"], fields["looks"]) == (0.5, 0.5, 12)


def test_start_can_be_told_by_another_element() -> None:
    assert looks("..wwpp").fields("loading", started="position")["startup_s"] == 1.75
    assert looks("..ww").fields("loading", started="position")["startup_s"] is None


def test_stall_to_the_end_has_no_duration() -> None:
    assert looks("ppww").fields("loading")["stalls"] == [{"at": 100.75, "duration_s": None}]


def test_never_playing_is_neither_start_nor_stall() -> None:
    fields = looks("www").fields("loading")
    assert (fields["startup_s"], fields["stalls"]) == (None, [])


def test_resolution_is_that_of_the_slowest_look() -> None:
    times = (0.0, 0.5, 2.5, 3.0)
    assert Sampled(tuple(ScreenSample(t, 0.1, {}) for t in times), 0.5).resolution_s == 2.0
    with pytest.raises(StepError, match="there is no sample of the screen"):
        Sampled((), 0.5).fields("loading")


class Phone:
    """A screen whose spinner disappears at the third look; the second look takes long."""

    def __init__(self) -> None:
        self.looked = 0

    def hierarchy(self) -> str:
        self.looked += 1
        time.sleep(0.25 if self.looked == 2 else 0)
        spinner = '<node resource-id="a.b:id/spinner" bounds="[0,0][9,9]" />' if self.looked < 3 else ""
        return f'<hierarchy rotation="0"><node class="View" bounds="[0,0][9,9]">{spinner}</node></hierarchy>'


def test_late_look_moves_none_of_the_others() -> None:
    seen: list[int] = []
    elements = {"loading": Selector("id", "spinner")}
    began = time.time()
    sampled = sample(Phone(), elements, for_s=0.75, every_s=0.1, watch=lambda windows: seen.append(len(windows)))  # type: ignore[arg-type]
    assert ["loading" in look.shown for look in sampled.looks][:3] == [True, True, False]
    assert len(seen) == len(sampled.looks) < 8
    # On the grid of 0.1 s that started with the first look, and never ahead of it.
    grid = [(look.t - began) % 0.1 for look in sampled.looks if look.took_s < 0.05]
    assert all(offset >= -1e-3 for offset in grid)
    assert sampled.resolution_s > 0.2
