"""Watch clips in an Android app; find startup delay and stalls by the screen (QoE Doctor, chen2014 §4.2.2)."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from mplab.base.errors import StepError
from mplab.scenarios.base.android.motion import ENDED, NAMES, POSITION, PROBLEM, SKIP_AD, Motion, motion, waits
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, AndroidScenario, Visit
from mplab.scenarios.base.playback import PlaybackParameters
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.sampling import DEFAULT_EVERY_S, ScreenSample, sample
from mplab.scenarios.base.scenario import Scenario, Session

_SERVICE = "dash"


class AndroidPlaybackScenario(AndroidScenario[PlaybackParameters]):
    """Watch clips in a video app on Android. Each clip is opened by its link.

    Writes the same observations ``tapped``, ``playing``, ``waiting``, ``left`` and ``ended`` as on the virtual phone,
    except that ``buffer_s`` is null: the app does not show its buffer level. The observation ``rebuffering`` of a clip
    has the resolution of these times.

    Args:
        virtual: the same scenario for the virtual phone.
        site: key of the site's URL among the facts of the service ``dash``. The site is used for clips that have no
            link in the app's section of ``app.yaml``.
    """

    def __init__(self, virtual: Scenario[PlaybackParameters], *, site: str) -> None:
        super().__init__(virtual)
        self.site = site

    @contextmanager
    def open(self, context: Context, parameters: PlaybackParameters) -> Iterator["_Session"]:
        """Prepare the app for one cell, and yield the session that watches the clips."""
        with self.visit(context) as visit:
            yield _Session(context, parameters, self, visit)


@dataclass
class _Session(Session[PlaybackParameters]):
    scenario: AndroidPlaybackScenario
    visit: Visit

    def run(self) -> None:
        """Watch the clips one after the other, and write their observations.

        Raises:
            StepError: a clip does not start in time, or the app reports a problem.
        """
        for number, clip in enumerate(self.parameters.clips, 1):
            time.sleep(self.parameters.pause)
            self._watch(number, clip)
            self.visit.ui.back()

    def _link(self, clip: str) -> str:
        return self.visit.app.links.get(clip) or f"{self.context.service(_SERVICE)[self.scenario.site]}{clip}"

    def _watch(self, number: int, clip: str) -> None:
        context, parameters, visit, name = self.context, self.parameters, self.visit, self.scenario.name
        ui, tapped = visit.ui, time.time()
        ui.open(visit.app.start.format(url=self._link(clip)), timeout_s=OPEN_TIMEOUT_S)
        context.observe("tapped", visit=number, clip=clip, at=round(tapped, 3))
        began: list[float] = []

        def until(look: ScreenSample) -> bool:
            shown = look.shown
            if SKIP_AD in shown:
                ui.tap(visit.element(SKIP_AD))
            elif not began and not waits(look) and {"player", POSITION} & set(shown):
                began.append(look.t)
            late = not began and look.t > tapped + parameters.patience
            return late or PROBLEM in shown or ENDED in shown or bool(began and look.t > began[0] + parameters.watch)

        longest_s = parameters.patience + parameters.watch + DEFAULT_EVERY_S
        seen = sample(ui, visit.elements(*NAMES), for_s=longest_s, until=until, watch=visit.watch)
        if not seen.looks:
            raise StepError(f"{name}: {clip}: only dialogs were on the screen")
        played = motion(seen, spinner=True)
        last = seen.looks[-1].shown
        self._observe(played, number, clip, over=ENDED if ENDED in last else "left")
        context.observe("rebuffering", visit=number, clip=clip, **_fields(played, tapped, len(seen.looks)))
        if PROBLEM in last:
            raise StepError(f"{name}: {clip}: the app says: {last[PROBLEM]}")
        if played.began is None:
            raise StepError(f"{name}: {clip}: no picture within {parameters.patience:g} s")

    def _observe(self, played: Motion, number: int, clip: str, *, over: str) -> None:
        if played.began is None:
            return
        observe = partial(self.context.observe, visit=number, clip=clip)
        observe("playing", at=round(played.began, 3), media_s=0.0)
        for stall in played.stalls:
            observe("waiting", at=round(stall.began, 3), buffer_s=None, media_s=None)
            if stall.ended is not None:
                observe("playing", at=round(stall.ended, 3), media_s=None)
        observe(over, at=round(played.until, 3), media_s=round(played.played_s, 3))


def _fields(played: Motion, tapped: float, looks: int) -> dict[str, object]:
    return {
        "startup_s": None if played.began is None else round(played.began - tapped, 3),
        "stalls": len(played.stalls),
        "resolution_s": round(played.resolution_s, 3),
        "by": played.by,
        "looks": looks,
    }
