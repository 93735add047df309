"""Sample an app's screen at a fixed rate, for example to measure stalls of an app that does not report them.

QoE Doctor (chen2014, §4.2.2) reads an app's layout tree and takes the times at which a spinner appears and disappears.
This module reads the tree at a fixed rate. The state between two samples is unknown, so each time has a resolution: the
measured sampling interval, which is part of the observation.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from mplab.base.errors import StepError
from mplab.base.hierarchy import UiNode, parse_hierarchy
from mplab.drivers.ui.matching import find_node
from mplab.drivers.ui.protocol import Ui
from mplab.format.selector import Selector

DEFAULT_EVERY_S = 0.25


@dataclass(frozen=True)
class ScreenSample:
    """The elements on the screen at one time.

    Attributes:
        t: unix time of the sample, s: the middle between the request to the phone and its answer.
        took_s: time from the request to the answer, s.
        shown: name of each sampled element that was shown → its text.
    """

    t: float
    took_s: float
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Spell:
    """A time interval in which an element was shown.

    Attributes:
        began: unix time, s: the middle between the last sample without the element and the first sample with it.
        ended: unix time, s: the middle between the last sample with the element and the first sample without it; None:
            the element was shown until the last sample.
    """

    began: float
    ended: float | None

    @property
    def duration_s(self) -> float | None:
        """Return the length of the interval, s, rounded to 1 ms; None if it lasted until the last sample."""
        return None if self.ended is None else round(self.ended - self.began, 3)


class Stall(TypedDict):
    """A stall of a player after its playback has started.

    Attributes:
        at: unix time of the stall's start, s.
        duration_s: length of the stall, s; None: the stall lasted until the last sample.
    """

    at: float
    duration_s: float | None


class Rebuffering(TypedDict):
    """Fields of an observation ``rebuffering``.

    Attributes:
        startup_s: time from the first sample to the start of playback, s; None: the app never played.
        stalls: stalls after the start of playback; the wait before the start is not a stall.
        every_s: requested sampling interval, s.
        resolution_s: longest time between two consecutive samples, s.
        looks: number of samples.
        look_median_s: median time in which the phone answered a request for its screen, s.
    """

    startup_s: float | None
    stalls: list[Stall]
    every_s: float
    resolution_s: float
    looks: int
    look_median_s: float


@dataclass(frozen=True)
class Sampled:
    """The result of `sample`.

    Attributes:
        looks: samples of the screen in the order of time.
        every_s: requested sampling interval, s.
    """

    looks: Sequence[ScreenSample]
    every_s: float

    @property
    def resolution_s(self) -> float:
        """Return the longest time between two consecutive samples, s. Shorter events may be missed."""
        times = [look.t for look in self.looks]
        return max((after - before for before, after in itertools.pairwise(times)), default=self.every_s)

    def spells(self, name: str) -> list[Spell]:
        """Return the time intervals in which the element `name` was shown.

        The start or end of an interval is the middle between two samples: its error is at most half of `resolution_s`.
        """
        spells_found: list[Spell] = []
        before: ScreenSample | None = None
        began: float | None = None
        for look in self.looks:
            between = look.t if before is None else (before.t + look.t) / 2
            if name in look.shown and began is None:
                began = between
            elif name not in look.shown and began is not None:
                spells_found.append(Spell(began, between))
                began = None
            before = look
        return [*spells_found, Spell(began, None)] if began is not None else spells_found

    def fields(self, spinner: str, *, started: str = "") -> Rebuffering:
        """Return the fields of the observation ``rebuffering``.

        Args:
            spinner: name of the element that is shown while the app waits for data.
            started: name of the element that is shown once the app plays; "": the app plays when the spinner
                disappears for the first time.

        Raises:
            StepError: there is no sample.
        """
        if not self.looks:
            raise StepError("there is no sample of the screen")
        first = self.looks[0].t
        playing = self._plays_from(spinner, started)
        stalls = [spell for spell in self.spells(spinner) if playing is not None and spell.began >= playing]
        took = sorted(look.took_s for look in self.looks)
        return {
            "startup_s": None if playing is None else round(playing - first, 3),
            "stalls": [{"at": round(stall.began, 3), "duration_s": stall.duration_s} for stall in stalls],
            "every_s": self.every_s,
            "resolution_s": round(self.resolution_s, 3),
            "looks": len(self.looks),
            "look_median_s": round(took[len(took) // 2], 3),
        }

    def _plays_from(self, spinner: str, started: str) -> float | None:
        """Return the unix time at which the app begins to play, s; None: it never plays. Args as for `fields`."""
        if started:
            return next((spell.began for spell in self.spells(started)), None)
        waits = self.spells(spinner)
        if not waits or waits[0].began > self.looks[0].t:
            return self.looks[0].t
        return waits[0].ended


def sample(
    ui: Ui,
    elements: Mapping[str, Selector],
    *,
    for_s: float,
    every_s: float = DEFAULT_EVERY_S,
    until: Callable[[ScreenSample], bool] = lambda _look: False,
    watch: Callable[[Sequence[UiNode]], object] = lambda _windows: False,
) -> Sampled:
    """Sample the screen at a fixed rate for a given time.

    A late sample does not shift later ones. Samples that fall due while the phone still answers are skipped.

    Args:
        ui: the phone's screen.
        elements: name → selector of the elements to look for. The names are the keys of `ScreenSample.shown`.
        for_s: duration of the sampling, s.
        every_s: sampling interval, s.
        until: called with each sample; if it returns True, sampling ends.
        watch: called with all windows of each sample, e.g. `AndroidUi.close_dialog`. If it returns True, a dialog or
            another window covered the app, and the sample is left out.

    Raises:
        StepError: the phone does not answer.
    """
    looks: list[ScreenSample] = []
    begin = time.monotonic()
    due = begin
    while due < begin + for_s:
        time.sleep(max(0.0, due - time.monotonic()))
        look = _look(ui, elements, watch)
        if look is not None:
            looks.append(look)
            if until(look):
                break
        while due <= time.monotonic():
            due += every_s
    return Sampled(tuple(looks), every_s)


def _look(ui: Ui, elements: Mapping[str, Selector], watch: Callable[[Sequence[UiNode]], object]) -> ScreenSample | None:
    begin, clock = time.time(), time.monotonic()
    xml = ui.hierarchy()
    took_s = time.monotonic() - clock
    try:
        windows = parse_hierarchy(xml)
    except ValueError as error:
        raise StepError(f"looking at the screen: {error}") from error
    if watch(windows):
        return None
    nodes = {name: find_node(windows, selector) for name, selector in elements.items()}
    return ScreenSample(
        begin + took_s / 2, took_s, {name: node.label for name, node in nodes.items() if node is not None}
    )
