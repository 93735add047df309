"""Listen to radio and music apps on Android, and time playback by the screen; the sound is not recorded."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mplab.base.errors import StepError
from mplab.scenarios.base.android.motion import LOADING, NAMES, PROBLEM, motion, stall_fields
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, AndroidScenario, Visit
from mplab.scenarios.base.listening import ListeningParameters
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.sampling import ScreenSample, sample
from mplab.scenarios.base.scenario import Scenario, Session

_SERVICE = "icecast"
_LINK = "play"


class AndroidListeningScenario(AndroidScenario[ListeningParameters]):
    """Listen to a radio or music app on Android, and time its playback by the screen.

    Writes one observation, ``listened``, with the fields ``tapped``, ``listened_s``, ``startup_s``, ``silences`` (a
    list of ``at`` and ``duration_s``), ``resolution_s`` and ``by`` (as in `Motion`), and ``looks``, the number of
    screen samples. No sound is recorded: without root, no Android app can record the sound of another app.

    Args:
        virtual: the same scenario for the virtual phone.
        url: key of the URL to open, among the facts of the service ``icecast``. A link ``play`` in the app's section
            of ``app.yaml`` takes precedence.
        button: name of the element that starts the sound, in the app's section of ``app.yaml``.
        playing: name of the element that is shown while the app plays or rebuffers, in the same section.
    """

    def __init__(self, virtual: Scenario[ListeningParameters], *, url: str, button: str, playing: str) -> None:
        super().__init__(virtual)
        self.url = url
        self.button = button
        self.playing = playing

    @contextmanager
    def open(self, context: Context, parameters: ListeningParameters) -> Iterator["_Session"]:
        """Prepare the app for one cell, and yield the session that listens to it."""
        with self.visit(context) as visit:
            yield _Session(context, parameters, self, visit)


@dataclass
class _Session(Session[ListeningParameters]):
    scenario: AndroidListeningScenario
    visit: Visit

    def run(self) -> None:
        """Open the station or track list, tap the button that starts the sound, and sample the screen while it plays.

        Raises:
            StepError: an element is missing, or the app reports a problem or never played.
        """
        context, parameters, visit, scenario = self.context, self.parameters, self.visit, self.scenario
        app = visit.app
        link = app.links.get(_LINK) or context.service(_SERVICE)[scenario.url]
        visit.ui.open(app.start.format(url=link), timeout_s=OPEN_TIMEOUT_S)
        visit.ui.tap(visit.element(scenario.button))
        tapped = time.time()
        elements = {**visit.elements(*NAMES), "player": visit.element(scenario.playing)}

        def until(look: ScreenSample) -> bool:
            return PROBLEM in look.shown or look.t >= tapped + parameters.listen

        seen = sample(visit.ui, elements, for_s=parameters.listen, until=until, watch=visit.watch)
        if not seen.looks:
            raise StepError(f"{scenario.name}: only dialogs were on the screen")
        played = motion(seen, spinner=LOADING in elements)
        last = seen.looks[-1].shown
        context.observe(
            "listened",
            tapped=round(tapped, 3),
            listened_s=round(played.until - tapped, 3),
            startup_s=None if played.began is None else round(max(0.0, played.began - tapped), 3),
            silences=stall_fields(played.stalls, played.until),
            resolution_s=round(played.resolution_s, 3),
            by=played.by,
            looks=len(seen.looks),
        )
        if PROBLEM in last:
            raise StepError(f"{scenario.name}: the app says: {last[PROBLEM]}")
        if played.began is None:
            raise StepError(f"{scenario.name}: nothing was played within {parameters.listen:g} s")
