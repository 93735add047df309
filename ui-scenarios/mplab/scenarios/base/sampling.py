"""What an app shows, looked at again and again: the way to see rebuffering in an app that tells nothing of itself.

QoE Doctor (chen2014, §4.2.2) reads an app's layout tree and takes the times at which a spinner comes and goes. Here the
tree is read at a fixed rate: what is between two looks is not known, so every time has the resolution that the looks
really had, and the observation says it.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from mplab.base.errors import StepError
from mplab.drivers.ui.hierarchy import Node, parse_hierarchy
from mplab.drivers.ui.matching import find_node
from mplab.drivers.ui.protocol import Ui
from mplab.format.selector import Selector

DEFAULT_EVERY_S = 0.25


@dataclass(frozen=True)
class ScreenSample:
    """One look at the screen.

    Attributes:
        t: unix time of its middle, s.
        took_s: how long the phone took to answer.
        shown: the elements that were there, with their texts.
    """

    t: float
    took_s: float
    shown: Mapping[str, str]


@dataclass(frozen=True)
class Spell:
    """A time in which an element was shown.

    Attributes:
        began: unix time, s: between the last look without it and the first with it.
        ended: between the last look with it and the first without; None when it was there to the end.
    """

    began: float
    ended: float | None

    @property
    def duration_s(self) -> float | None:
        """How long, to the millisecond; None when it was there to the end."""
        return None if self.ended is None else round(self.ended - self.began, 3)


class Stall(TypedDict):
    """A wait after the start; `duration_s` None: to the end."""

    at: float
    duration_s: float | None


class Rebuffering(TypedDict):
    """Fields of an observation ``rebuffering``.

    Attributes:
        startup_s: from the first look; None when it never played.
        stalls: the wait before the start is none.
        every_s: how often was asked.
        resolution_s: the longest time between two looks.
        looks: how many there were.
        look_median_s: how long the phone took to answer.
    """

    startup_s: float | None
    stalls: list[Stall]
    every_s: float
    resolution_s: float
    looks: int
    look_median_s: float


@dataclass(frozen=True)
class Sampled:
    """What came of it.

    Attributes:
        looks: in order.
        every_s: how often was asked.
    """

    looks: Sequence[ScreenSample]
    every_s: float

    @property
    def resolution_s(self) -> float:
        """The longest time between two looks; what is shorter may have been missed."""
        times = [look.t for look in self.looks]
        return max((after - before for before, after in itertools.pairwise(times)), default=self.every_s)

    def spells(self, name: str) -> list[Spell]:
        """When an element was shown. Each bound is in the middle between two looks: it is off by half a resolution."""
        found: list[Spell] = []
        before: ScreenSample | None = None
        began: float | None = None
        for look in self.looks:
            between = look.t if before is None else (before.t + look.t) / 2
            if name in look.shown and began is None:
                began = between
            elif name not in look.shown and began is not None:
                found.append(Spell(began, between))
                began = None
            before = look
        return [*found, Spell(began, None)] if began is not None else found

    def fields(self, spinner: str, *, started: str = "") -> Rebuffering:
        """Of the observation ``rebuffering``.

        Args:
            spinner: the element that is shown while the app waits for data.
            started: the element that is shown once it plays; "": it plays when the spinner goes for the first time.

        Raises:
            StepError: there is no look.
        """
        if not self.looks:
            raise StepError("nothing was looked at")
        first = self.looks[0].t
        playing = self._plays_from(spinner, started)
        stalls = [spell for spell in self.spells(spinner) if playing is not None and spell.began >= playing]
        took = sorted(look.took_s for look in self.looks)
        return {
            "startup_s": None if playing is None else round(playing - first, 3),
            "stalls": [{"at": round(one.began, 3), "duration_s": one.duration_s} for one in stalls],
            "every_s": self.every_s,
            "resolution_s": round(self.resolution_s, 3),
            "looks": len(self.looks),
            "look_median_s": round(took[len(took) // 2], 3),
        }

    def _plays_from(self, spinner: str, started: str) -> float | None:
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
    watch: Callable[[Sequence[Node]], object] = lambda _windows: False,
) -> Sampled:
    """Look at the screen at a fixed rate.

    A look that comes late moves none of those after it; those that are due meanwhile are left out.

    Args:
        ui: the phone's.
        elements: what is looked for, by the names that `Look.shown` has.
        for_s: how long.
        every_s: from one look to the next.
        until: ends it earlier.
        watch: is given everything that is shown, e.g. `AndroidUi.close_dialog`; a look of which it says True was one at
            something else, and does not count.

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


def _look(ui: Ui, elements: Mapping[str, Selector], watch: Callable[[Sequence[Node]], object]) -> ScreenSample | None:
    asked, clock = time.time(), time.monotonic()
    xml = ui.hierarchy()
    took_s = time.monotonic() - clock
    try:
        windows = parse_hierarchy(xml)
    except ValueError as error:
        raise StepError(f"looking at the screen: {error}") from error
    if watch(windows):
        return None
    found = {name: find_node(windows, selector) for name, selector in elements.items()}
    return ScreenSample(
        asked + took_s / 2, took_s, {name: node.label for name, node in found.items() if node is not None}
    )
