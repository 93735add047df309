"""Clips of a video site, watched one after the other, as the scenarios `youtube` and `dailymotion` do."""

import contextlib
import math
import time
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from mplab.base.errors import StepError
from mplab.drivers.ui import Ui
from mplab.format.units import DurationS
from mplab.scenarios.base.protocol import Context, Parameters
from mplab.scenarios.base.smoothness import disturbances
from mplab.userfiles.app import App

MAX_TEST_S = 120.0
"""A test of an app takes at most so long (baerts2015 §4.3), unless what is to be watched takes longer."""
PAGE_TIMEOUT_S = 30.0

_SERVICE = "dash"
_OPEN_S, _USUAL_STARTUP_S, _SLACK_S = 3.0, 1.5, 30.0
_LOOK_EVERY_S = 0.5
_TAKE_SCRIPT = "return playback.take();"


class PlaybackParameters(Parameters):
    """Parameters of every scenario with adaptive video; each says which clips and qualities it has."""

    clips: tuple[str, ...]
    highest: str

    watch: Annotated[DurationS, Field(ge=1)] = Field(
        25.0, description="How long the user watches each clip, from its first picture on, unless it ends before."
    )
    patience: Annotated[DurationS, Field(ge=1)] = Field(10.0, description="How long the user waits for the picture.")
    pause: DurationS = Field(1.0, description="Rest in the list before each clip.")
    adaptation: Literal["capacity", "buffer", "dynamic"] = Field(
        "capacity",
        description="What chooses the quality: the throughput of the last segments (CBA), the buffer (BOLA), or "
        "what dash.js does by itself.",
    )

    @field_validator("clips")
    @classmethod
    def _once_each(cls, clips: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({clip for clip in clips if clips.count(clip) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)}")
        return clips


class PlaybackScenario:
    """`Scenario`: clips of a video site.

    Args:
        name: of the scenario.
        title: of the scenario.
        parameters: what can be chosen.
        site: the fact of the service ``dash`` that has the site's URL.
        app: elements ``started`` (there once the picture moves), ``status`` (says ``playing``, ``waiting``, ``ended``,
            or ``failed: …``), ``back`` (leads from a clip to the list), and each clip by its name.
    """

    needs_ui = True
    services: tuple[str, ...] = (_SERVICE,)

    def __init__(self, *, name: str, title: str, parameters: type[PlaybackParameters], site: str, app: App) -> None:
        self.name = name
        self.title = title
        self.parameters: type[Parameters] = parameters
        self._site = site
        self._app = app
        self._open: dict[Path, tuple[contextlib.ExitStack, Ui]] = {}

    def time_limit_s(self, parameters: PlaybackParameters) -> float:
        """120 s, or what the clips need and 30 s."""
        return math.ceil(max(MAX_TEST_S, self.estimate_s(parameters) + _SLACK_S))

    def estimate_s(self, parameters: PlaybackParameters) -> float:
        """The time to watch all clips."""
        return _OPEN_S + len(parameters.clips) * (parameters.pause + _USUAL_STARTUP_S + parameters.watch)

    def prepare(self, context: Context, parameters: PlaybackParameters) -> None:
        """Start the app, with nothing cached."""
        stack = contextlib.ExitStack()
        self._open[context.cell_dir] = stack, stack.enter_context(context.open_ui())

    def run(self, context: Context, parameters: PlaybackParameters) -> None:
        """Open the site and watch the clips; everything the player tells is observed, also of a clip that fails.

        Raises:
            StepError: a clip does not begin in time, or the player gives up.
        """
        _, ui = self._open[context.cell_dir]
        url = self._app.start.format(
            url=context.service(_SERVICE)[self._site],
            adaptation=parameters.adaptation,
            highest=parameters.highest.removesuffix("p"),
        )
        ui.open(url, timeout_s=PAGE_TIMEOUT_S)
        for visit, clip in enumerate(parameters.clips, 1):
            time.sleep(parameters.pause)
            try:
                self._watch(ui, parameters, clip)
            except StepError:
                with contextlib.suppress(StepError):  # the first error says more
                    _observe(context, ui, visit, clip)
                raise
            if not _observe(context, ui, visit, clip):
                raise StepError(f"{self.name}: {clip}: the player tells of no segment")

    def clean_up(self, context: Context, parameters: PlaybackParameters) -> None:
        """Close the app."""
        stack, _ = self._open.pop(context.cell_dir, (contextlib.ExitStack(), None))
        stack.close()

    def _watch(self, ui: Ui, parameters: PlaybackParameters, clip: str) -> None:
        elements = self._app.elements
        ui.tap(elements[clip])
        patience = parameters.patience
        try:
            ui.wait(elements["started"], timeout_s=patience)
        except StepError as error:
            said = self._status(ui)
            raise StepError(f"{self.name}: {clip}: no picture within {patience:g} s, {said}: {error}") from error
        leave_at = time.monotonic() + parameters.watch
        while (left := leave_at - time.monotonic()) > 0:
            time.sleep(min(_LOOK_EVERY_S, left))
            status = ui.read(elements["status"])
            if status == "ended":
                break
            if status.startswith("failed"):
                raise StepError(f"{self.name}: {clip}: the player {status}")
        ui.tap(elements["back"])

    def _status(self, ui: Ui) -> str:
        with contextlib.suppress(StepError):
            return f"the player says {ui.read(self._app.elements['status'])!r}"
        return "the player says nothing"


def _observe(context: Context, ui: Ui, visit: int, clip: str) -> int:
    """Write down what the player has told since, and warn when the host was too slow for it; the number of segments."""
    records = ui.evaluate(_TAKE_SCRIPT)
    for record in records:
        fields = {name: value for name, value in record.items() if name != "event"}
        context.observe(record["event"], visit=visit, **fields)
    for text in disturbances(records):
        context.warn(f"{clip}: {text}")
    return sum(record["event"] == "segment" for record in records)
