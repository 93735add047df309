"""Apps that are listened to, as the scenarios `radio` and `spotify` do: one tap, and a recording of what the phone
plays from then on.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.phone.sound import PROGRAMS as SOUND_PROGRAMS
from mplab.drivers.phone.sound import Recorded, SoundCard
from mplab.drivers.ui import Ui
from mplab.format.selector import Selector
from mplab.format.units import DurationS, between
from mplab.scenarios.base.protocol import Context, Parameters
from mplab.userfiles.app import App

RECORDING = "sound.wav"
"""In the cell's folder."""
PAGE_TIMEOUT_S = 25.0
LONGEST_S = 75.0

_SERVICE = "icecast"
_BESIDE_S = 45.0
"""For the page before, and what the app says of itself behind it."""

_AFTER_S = 0.5
"""The recording goes on for so long, so that it covers all that was listened to."""


_LISTEN_BOUNDS = between("listen", 1, LONGEST_S, "from {least} to {most} is possible: a test ends within 120 s")


class ListeningParameters(Parameters):
    """Parameters of every app that is listened to."""

    listen: Annotated[DurationS, _LISTEN_BOUNDS] = Field(LONGEST_S, description="From the tap on.")
    patience: Annotated[DurationS, between("patience", 1, 60, "from {least} to {most} is needed")] = Field(
        10.0, description="Without a byte, until the app sends another request."
    )
    buffer: Annotated[DurationS, between("buffer", 0.1, 30)] = Field(
        2.0, description="Of sound, before it is played: at the start, and after it has run out."
    )


@dataclass(frozen=True)
class Listened:
    """What came of it.

    Attributes:
        recorded: the recording.
        tapped: unix time of the tap, as the app got it, s.
        player: what the app says of itself.
    """

    recorded: Recorded
    tapped: float
    player: dict[str, Any]

    def fields(self, listened_s: float) -> dict[str, Any]:
        """Of the observation ``sound``, which `mplab.analysis.sound` reads: all but what was sent."""
        return {
            "file": self.recorded.file.name,
            "began": round(self.recorded.began, 4),
            "tapped": self.tapped,
            "listened_s": listened_s,
        }


class Listening:
    """Sound card and app of one cell, from `start` to `close`.

    Args:
        name: the scenario, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._stack = ExitStack()
        self._card: SoundCard | None = None
        self._ui: Ui | None = None

    def start(self, context: Context) -> None:
        """Start the sound card and an app that plays to it."""
        self._card = self._stack.enter_context(context.open_sound())
        self._ui = self._stack.enter_context(context.open_ui(sound=self._card.server))

    def close(self) -> None:
        """End both."""
        self._stack.close()

    def listen(self, context: Context, *, url: str, button: Selector, listened_s: float) -> Listened:
        """Open the app's page, tap, and listen.

        Args:
            context: of the cell.
            url: of the app's page, whose script has an object ``player`` with the time ``tapped``.
            button: what starts the sound.
            listened_s: how long, from the tap.

        Raises:
            StepError: the page did not open, or nothing at all was heard.
            DeviceError: the sound card did not do its part.
        """
        if self._card is None or self._ui is None:
            raise StepError(f"{self._name}: the app has not been started")
        self._ui.open(url, timeout_s=PAGE_TIMEOUT_S)
        self._card.record(context.cell_dir / RECORDING)
        self._ui.tap(button)
        time.sleep(listened_s + _AFTER_S)
        recorded = self._card.stop_recording()
        player = self._ui.evaluate("return player;")
        if not isinstance(player, dict) or not player.get("tapped"):
            raise StepError(f"{self._name}: the tap did not reach the app")
        for event in player.pop("events", []):
            context.observe("player", at=event.pop("t"), what=event.pop("event"), **event)
        if not recorded.peak:
            raise StepError(f"{self._name}: no sound in {recorded.duration_s:.0f} s; the app says: {player}")
        return Listened(recorded, float(player["tapped"]), player)


class ListeningScenario(ABC):
    """`Scenario`: an app is listened to.

    Args:
        name: of the scenario.
        title: of the scenario.
        parameters: what can be chosen.
        app: its ``start`` may have each parameter by its name, and what `places` gives.
        button: what the app calls the element that starts the sound.
    """

    needs_ui = True
    services: tuple[str, ...] = (_SERVICE,)
    programs = SOUND_PROGRAMS
    cpus = 1.0

    def __init__(self, *, name: str, title: str, parameters: type[ListeningParameters], app: App, button: str) -> None:
        self.name = name
        self.title = title
        self.parameters: type[Parameters] = parameters
        self._app = app
        self._button = button
        self._listening: dict[Path, Listening] = {}

    @abstractmethod
    def places(self, context: Context, facts: Mapping[str, str]) -> Mapping[str, object]:
        """What the app is started with, beside the parameters; `facts` are those of the service ``icecast``."""

    @abstractmethod
    def sent(self, facts: Mapping[str, str], player: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the observation ``sound`` says of the source: ``melody``, what was sent, and what the player counted."""

    def time_limit_s(self, parameters: ListeningParameters) -> float:
        """What is listened to, and the page."""
        return parameters.listen + _BESIDE_S

    def estimate_s(self, parameters: ListeningParameters) -> float:
        """What is listened to, and a second for the page."""
        return parameters.listen + 1

    def prepare(self, context: Context, parameters: ListeningParameters) -> None:
        """Start sound card and browser."""
        listening = self._listening[context.cell_dir] = Listening(self.name)
        listening.start(context)

    def run(self, context: Context, parameters: ListeningParameters) -> None:
        """Open the app's page, tap, listen."""
        facts = context.service(_SERVICE)
        listened = self._listening[context.cell_dir].listen(
            context,
            url=self._app.start.format(**dict(parameters), **self.places(context, facts)),
            button=self._app.elements[self._button],
            listened_s=parameters.listen,
        )
        sent = self.sent(facts, listened.player)
        context.observe("sound", **listened.fields(parameters.listen), **sent)

    def clean_up(self, context: Context, parameters: ListeningParameters) -> None:
        """Close both."""
        listening = self._listening.pop(context.cell_dir, None)
        if listening is not None:
            listening.close()
