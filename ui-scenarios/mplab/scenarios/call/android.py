"""Call an address that answers by itself, e.g. an echo service, with Linphone or another SIP client on Android."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mplab.base.errors import StepError
from mplab.scenarios.base import Context, Session
from mplab.scenarios.base.android import AndroidScenario, Visit
from mplab.scenarios.base.android.motion import seconds_of
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S
from mplab.scenarios.base.sampling import ScreenSample, sample

from .scenario import SCENARIO, CallParameters

_CONNECT_S = 20.0
_LINK = "callee"
_DURATION = "duration"


class AndroidCallScenario(AndroidScenario[CallParameters]):
    """Make calls in a SIP client on Android.

    An observation ``call`` has ``setup_s`` (time from the tap until the app's call timer runs, ringing and answer
    included), ``shown_s`` (the highest value of the call timer), ``cut`` (true if the call ended before it was hung up)
    and ``resolution_s``. The sound is not recorded: Android lets no app record another app's call.
    """

    @contextmanager
    def open(self, context: Context, parameters: CallParameters) -> Iterator["_Session"]:
        """Prepare the app for one cell, and yield the session that makes the calls."""
        with self.visit(context) as visit:
            yield _Session(context, parameters, visit)


@dataclass
class _Session(Session[CallParameters]):
    visit: Visit

    def run(self) -> None:
        """Make the calls one after the other. Hang up each call when it has lasted for the parameter ``duration``.

        Raises:
            StepError: a call is not connected within 20 s, or an element is missing.
        """
        visit, parameters = self.visit, self.parameters
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        for number in range(1, parameters.calls + 1):
            if number > 1:
                time.sleep(parameters.pause)
            self._call(number)

    def _call(self, number: int) -> None:
        visit, duration_s = self.visit, self.parameters.duration
        callee = visit.app.links.get(_LINK)
        if callee is None:
            raise StepError(
                f"{visit.app.package}: its section in app.yaml has no link {_LINK!r}. Add the address to call"
            )
        visit.ui.type(visit.element("address"), callee)
        visit.ui.tap(visit.element("call"))
        dialled = time.time()
        connected: list[tuple[float, float]] = []
        before = dialled

        def until(look: ScreenSample) -> bool:
            nonlocal before
            if not connected and _DURATION in look.shown:
                connected.append((before, look.t))
            before = look.t
            if connected:
                return _DURATION not in look.shown or look.t >= connected[0][1] + duration_s
            return look.t > dialled + _CONNECT_S

        elements = {_DURATION: visit.element(_DURATION)}
        seen = sample(visit.ui, elements, for_s=_CONNECT_S + duration_s, until=until, watch=visit.watch)
        if not connected:
            raise StepError(f"call {number}: not connected within {_CONNECT_S:g} s")
        cut = _DURATION not in seen.looks[-1].shown
        if not cut:
            visit.ui.tap(visit.element("hang up"))
        (earliest, first), ended = connected[0], seen.looks[-1].t
        at = (earliest + first) / 2
        shown = [seconds for look in seen.looks if (seconds := seconds_of(look.shown.get(_DURATION, ""))) is not None]
        self.context.observe(
            "call",
            call=str(number),
            dialled_at=round(dialled, 3),
            answered_at=None,
            connected_at=round(at, 3),
            setup_s=round(at - dialled, 3),
            ended_at=round(ended, 3),
            duration_s=round(ended - at, 3),
            shown_s=max(shown, default=None),
            cut=cut,
            candidates={},
            resolution_s=round(max(first - earliest, seen.resolution_s), 3),
        )


ANDROID = AndroidCallScenario(SCENARIO)
