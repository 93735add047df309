"""Wait until the screen shows that an app has finished an action, and time it."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mplab.base.hierarchy import UiNode
from mplab.drivers.ui import Ui
from mplab.format.selector import Selector
from mplab.scenarios.base.sampling import DEFAULT_EVERY_S, ScreenSample, sample

SHORT_EVERY_S = 0.1
"""Sampling interval for short waits, s. A slow phone is sampled less often."""
GRACE_S = 2.0
"""Time after the tap in which a working app shows its busy element, s. A faster app may never show it."""

_BUSY, _DONE, _FAILED = "busy", "done", "failed"


@dataclass(frozen=True)
class Settled:
    """Outcome and end of an app's action, found in samples of the screen by `settle`.

    Attributes:
        outcome: ``done`` or ``failed``; ``waiting``: the app did not finish in time.
        at: unix time at which the action ended, s: the middle between the last sample that does not show the end and
            the first one that does. For ``waiting``: unix time at which `settle` gave up.
        resolution_s: time between these two samples, s; at least the sampling interval.
        said: text of the element that showed the outcome.
        looks: number of screen samples.
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
    watch: Callable[[Sequence[UiNode]], object] = lambda _windows: False,
) -> Settled:
    """Sample the screen until the app has finished an action, has failed, or `for_s` is over.

    The action is finished when `busy` was seen and is gone, and `done` is shown. If `busy` was never seen, the app may
    not have started the action yet. Then all samples until `GRACE_S` after the tap must show it as finished, and the
    first of these samples is its end. Without an element `busy` there is no grace time.

    Args:
        ui: the phone's screen.
        since: unix time of the tap, s.
        for_s: longest wait, s.
        busy: element that is shown while the app works.
        done: element that is shown when the app has finished; None: it has finished when `busy` is not shown.
        failed: element that is shown when the app gives up.
        every_s: sampling interval, s.
        watch: called with all windows of each sample; see `sample`.

    Raises:
        StepError: the phone does not answer.
    """
    elements = {
        name: selector for name, selector in ((_BUSY, busy), (_DONE, done), (_FAILED, failed)) if selector is not None
    }
    grace_s = GRACE_S if busy is not None else 0.0
    was_busy = False
    clear: tuple[float, float] | None = None
    """Unix times of the two samples around a possible end of the action; None: the last sample shows no end."""
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
        resolution_s = max(end - begin, every_s)  # the driver does not report the exact time of the tap
        return Settled(outcome, (begin + end) / 2, resolution_s, last.get(_FAILED, last.get(_DONE, "")), len(looks))
    return Settled("waiting", time.time(), every_s, last.get(_BUSY, ""), len(looks))
