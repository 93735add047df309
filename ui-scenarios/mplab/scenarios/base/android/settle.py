"""When an app is done with something, as far as it can be seen."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mplab.drivers.ui import Ui
from mplab.drivers.ui.hierarchy import Node
from mplab.format.selector import Selector
from mplab.scenarios.base.sampling import DEFAULT_EVERY_S, ScreenSample, sample

SHORT_EVERY_S = 0.1
"""From one look to the next where what is waited for is short; a phone that is slower is looked at less often."""
GRACE_S = 2.0
"""So long an app may need to show that it is busy; what is done sooner may never show it."""

_BUSY, _DONE, _FAILED = "busy", "done", "failed"


@dataclass(frozen=True)
class Settled:
    """How it ended.

    Attributes:
        outcome: ``waiting``: not in time.
        at: unix time, s, in the middle between the last look before it and the first one with it.
        resolution_s: the time between these two, at least that from one look to the next.
        said: the text of the element that told it.
        looks: how often was looked.
    """

    outcome: Literal["done", "failed", "waiting"]
    at: float
    resolution_s: float
    said: str
    looks: int


def settle(
    ui: Ui,
    *,
    since: float,
    for_s: float,
    busy: Selector | None = None,
    done: Selector | None = None,
    failed: Selector | None = None,
    every_s: float = DEFAULT_EVERY_S,
    watch: Callable[[Sequence[Node]], object] = lambda _windows: False,
) -> Settled:
    """Look at the screen until the app is done.

    It is once `busy` is gone that was there, and `done` is there. Where `busy` was never seen, because it was too short
    or because there is none, what shows `done` for `GRACE_S` has been done since the first look at it.

    Args:
        ui: the phone's.
        since: unix time of the tap, s.
        for_s: how long at most.
        busy: is there while the app works.
        done: is there when it is done; None: the absence of `busy` says it.
        failed: is there when the app gives up.
        every_s: from one look to the next.
        watch: as for `sample`.

    Raises:
        StepError: the phone does not answer.
    """
    elements = {name: one for name, one in ((_BUSY, busy), (_DONE, done), (_FAILED, failed)) if one is not None}
    grace_s = GRACE_S if busy is not None else 0.0
    was_busy = False
    clear: tuple[float, float] | None = None
    """The last look before what may be the end, and the first one with it."""
    before = since

    def until(look: ScreenSample) -> bool:
        nonlocal was_busy, clear, before
        shown = look.shown
        if _FAILED in shown:
            clear = clear or (before, look.t)
            return True
        if _BUSY in shown or (done is not None and _DONE not in shown):
            was_busy, clear, before = was_busy or _BUSY in shown, None, look.t
            return False
        clear = clear or (before, look.t)
        before = look.t
        return was_busy or look.t >= since + grace_s

    looks = sample(ui, elements, for_s=max(for_s, every_s), every_s=every_s, until=until, watch=watch).looks
    last = looks[-1].shown if looks else {}
    if _FAILED in last or (clear is not None and (was_busy or looks[-1].t >= since + grace_s)):
        begin, end = clear or (since, looks[-1].t)
        outcome: Literal["done", "failed"] = "failed" if _FAILED in last else "done"
        resolution_s = max(end - begin, every_s)  # when exactly the finger touched, the driver does not say
        return Settled(outcome, (begin + end) / 2, resolution_s, last.get(_FAILED, last.get(_DONE, "")), len(looks))
    return Settled("waiting", time.time(), every_s, last.get(_BUSY, ""), len(looks))
