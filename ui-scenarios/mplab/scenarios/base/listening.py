"""Listen to radio or music in a web app (scenarios `radio` and `spotify`): tap once, and record the phone's sound."""

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.phone.sound import PROGRAMS as SOUND_PROGRAMS
from mplab.drivers.phone.sound import SoundCard
from mplab.drivers.ui import BrowserUi
from mplab.format.units import DurationS, between
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Parameters, Scenario, Session
from mplab.userfiles.experiments.app import App

RECORDING = "sound.wav"
"""Name of the recording in the cell's folder."""
PAGE_TIMEOUT_S = 25.0
LONGEST_S = 75.0

_SERVICE = "icecast"
_BESIDE_S = 45.0
"""Part of the time limit in addition to the listening time, s: to load the page and to read the app's report."""

_AFTER_S = 0.5
"""Recording time after the end of listening, s, so that the recording covers all of it."""

Player: TypeAlias = dict[str, Any]
"""The object ``player`` of the app's page, without its events."""

_LISTEN_BOUNDS = between("listen", 1, LONGEST_S, "from {least} to {most} is possible: a test ends within 120 s")


class ListeningParameters(Parameters):
    """Parameters of every scenario that listens to an app."""

    listen: Annotated[DurationS, _LISTEN_BOUNDS] = Field(
        LONGEST_S, description="Listening time from the tap on, 1 s to 75 s."
    )
    patience: Annotated[DurationS, between("patience", 1, 60, "from {least} to {most} is needed")] = Field(
        10.0,
        description="Time without a byte until the app requests the rest again (baerts2015 §6.2.2: it 'could take "
        "from 10 to 55 seconds').",
    )
    buffer: Annotated[DurationS, between("buffer", 0.1, 30)] = Field(
        2.0, description="Buffered sound before playback starts, and before it resumes after the buffer was empty."
    )


class ListeningScenario(Scenario[ListeningParameters]):
    """Base class of scenarios that listen to a web app and record the phone's sound.

    Args:
        name: name of the scenario.
        title: title of the scenario.
        parameters: class of the scenario's parameters.
        app: the web app. Placeholders in its ``start`` are names of parameters and the keys that `places` returns.
        button: name of the app's element that starts the sound.
    """

    needs_ui = True
    services = (_SERVICE,)
    programs = SOUND_PROGRAMS
    cpus = 1.0

    def __init__(self, *, name: str, title: str, parameters: type[ListeningParameters], app: App, button: str) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self.app = app
        self.button = button

    @abstractmethod
    def places(self, context: Context, facts: Mapping[str, str]) -> Mapping[str, object]:
        """Return placeholder → value, for the placeholders in the app's ``start`` that are not names of parameters.

        Args:
            context: resources of the cell.
            facts: facts of the service ``icecast``.
        """

    @abstractmethod
    def sent(self, facts: Mapping[str, str], player: Player) -> Mapping[str, object]:
        """Return fields of the observation ``sound``: the sent melody (``melody``), and the player's counters.

        Args:
            facts: facts of the service ``icecast``.
            player: object ``player`` of the app's page.
        """

    def time_limit_s(self, parameters: ListeningParameters) -> float:
        """Return the listening time plus 45 s."""
        return parameters.listen + _BESIDE_S

    def estimate_s(self, parameters: ListeningParameters) -> float:
        """Return the listening time plus 1 s to load the page."""
        return parameters.listen + 1

    @contextmanager
    def open(self, context: Context, parameters: ListeningParameters) -> Iterator["_Session"]:
        """Start the phone's sound card, and a browser that plays to it. Yield the session; stop both at exit."""
        with context.open_sound() as card, context.open_ui(sound=card.server) as ui:
            yield _Session(context, parameters, self, card, ui)


@dataclass
class _Session(Session[ListeningParameters]):
    scenario: ListeningScenario
    card: SoundCard
    ui: BrowserUi

    def run(self) -> None:
        """Open the app's page, tap the button, and record the sound to the cell's folder.

        The page's script must have an object ``player``; its key ``tapped`` is the unix time of the tap, s.

        Raises:
            StepError: the page did not open, the tap did not reach it, or nothing was heard.
            DeviceError: the sound card failed.
        """
        context, parameters, scenario = self.context, self.parameters, self.scenario
        facts = context.service(_SERVICE)
        places = scenario.places(context, facts)
        self.ui.open(scenario.app.start.format(**dict(parameters), **places), timeout_s=PAGE_TIMEOUT_S)
        self.card.record(context.cell_dir / RECORDING)
        self.ui.tap(scenario.app.elements[scenario.button])
        time.sleep(parameters.listen + _AFTER_S)
        recorded = self.card.stop_recording()
        player = self._player()
        if not recorded.peak:
            raise StepError(f"{scenario.name}: no sound in {recorded.duration_s:.0f} s; the app says: {player}")
        context.observe(
            "sound",
            file=recorded.file.name,
            began=round(recorded.began, 4),
            tapped=float(player["tapped"]),
            listened_s=parameters.listen,
            **scenario.sent(facts, player),
        )

    def _player(self) -> Player:
        """Write the events of the page's object ``player`` as observations ``player``. Return the rest of the object.

        Raises:
            StepError: the page has no such object, or the object has no time of a tap.
        """
        player: Player | None = self.ui.evaluate("return player;")
        if not isinstance(player, dict) or not player.get("tapped"):
            raise StepError(f"{self.scenario.name}: the tap did not reach the app")
        for event in player.pop("events", []):
            self.context.observe("player", at=event.pop("t"), what=event.pop("event"), **event)
        return player
