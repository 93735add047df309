"""Sample an app's screen at a fixed rate, e.g. to measure rebuffering of an app that reports nothing itself.

QoE Doctor (chen2014, §4.2.2) reads an app's layout tree and takes the times at which a spinner appears and disappears.
Here the tree is read at a fixed rate. The state between two samples is unknown, so each time has a resolution: the
measured sampling interval, which the observation reports.
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
    """One sample of the screen.

    Attributes:
        t: unix time, s: the middle between request and answer.
        took_s: response time of the phone.
        shown: element that was shown → its text.
    """

    t: float
    took_s: float
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Spell:
    """An interval in which an element was shown.

    Attributes:
        began: unix time, s: the middle between the last sample without the element and the first with it.
        ended: the middle between the last sample with it and the first without; None: shown until the last sample.
    """

    began: float
    ended: float | None

    @property
    def duration_s(self) -> float | None:
        """Length in seconds, to the millisecond; None when the element was shown until the last sample."""
        return None if self.ended is None else round(self.ended - self.began, 3)


class Stall(TypedDict):
    """A stall after the start of playback.

    Attributes:
        at: unix time of its start, s.
        duration_s: length, s; None: it lasted until the last sample.
    """

    at: float
    duration_s: float | None


class Rebuffering(TypedDict):
    """Fields of an observation ``rebuffering``.

    Attributes:
        startup_s: time from the first sample to playback; None: it never played.
        stalls: stalls after the start; the wait before it is not a stall.
        every_s: requested sampling interval.
        resolution_s: longest time between two samples.
        looks: number of samples.
        look_median_s: median response time of the phone.
    """

    startup_s: float | None
    stalls: list[Stall]
    every_s: float
    resolution_s: float
    looks: int
    look_median_s: float


@dataclass(frozen=True)
class Sampled:
    """The samples of a screen.

    Attributes:
        looks: samples by time.
        every_s: requested sampling interval, s.
    """

    looks: Sequence[ScreenSample]
    every_s: float

    @property
    def resolution_s(self) -> float:
        """Longest time between two samples; shorter events may be missed."""
        times = [look.t for look in self.looks]
        return max((after - before for before, after in itertools.pairwise(times)), default=self.every_s)

    def spells(self, name: str) -> list[Spell]:
        """Return the intervals in which an element was shown.

        A bound is the middle between two samples, so its error is at most half of `resolution_s`.
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
        """Return the unix time at which the app starts to play, s; None: it never plays."""
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
    """Sample the screen at a fixed rate.

    A late sample does not shift later ones; samples that fall due while the phone answers are skipped.

    Args:
        ui: the phone's screen.
        elements: name of an element, as in ``shown`` of the samples → its selector.
        for_s: duration, s.
        every_s: sampling interval, s.
        until: called with each sample; True ends the sampling.
        watch: called with all windows of each sample, e.g. `AndroidUi.close_dialog`. If it returns True, something
            covered the app, and the sample does not count.

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
