"""Watch clips of a video site one after the other, as the scenarios `youtube` and `dailymotion` do."""

import contextlib
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi
from mplab.format.units import DurationS
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Parameters, Scenario, Session
from mplab.userfiles.experiments.app import App

MAX_TEST_S = 120.0
"""Smallest time limit of a test, s: the longest test of an app in baerts2015 §4.3."""
PAGE_TIMEOUT_S = 30.0
MAX_DROPPED_PERCENT = 5.0
"""Largest accepted share of dropped frames, %. Above it, the host was too slow to show the video."""
MAX_CLOCK_GAP_S = 1.0
"""Largest accepted gap between two samples, s. The page samples every 250 ms: in a larger gap it was blocked."""
MIN_BUFFER_S = 1.0
"""Smallest buffer level, s, at which a stall is caused by the host, as in ``host_stalls`` of `scoring.playback`."""

_SERVICE = "dash"
_OPEN_S, _USUAL_STARTUP_S, _SLACK_S = 3.0, 1.5, 30.0
_LOOK_EVERY_S = 0.5
_TAKE_SCRIPT = "return playback.take();"


class PlaybackParameters(Parameters):
    """Parameters of every scenario with adaptive video; a subclass lists its clips and qualities."""

    clips: tuple[str, ...]
    highest: str

    watch: Annotated[DurationS, Field(ge=1)] = Field(
        25.0, description="Time for which the user watches each clip, from its first picture on; less if the clip ends."
    )
    patience: Annotated[DurationS, Field(ge=1)] = Field(
        10.0, description="Longest wait for the first picture; then the cell fails."
    )
    pause: DurationS = Field(1.0, description="Rest in the list before each clip.")
    adaptation: Literal["capacity", "buffer", "dynamic"] = Field(
        "capacity",
        description="Rule that selects the quality: throughput of the last segments (CBA), buffer (BOLA), or the "
        "default of dash.js.",
    )

    @field_validator("clips")
    @classmethod
    def _once_each(cls, clips: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({clip for clip in clips if clips.count(clip) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)}")
        return clips


class PlaybackScenario(Scenario[PlaybackParameters]):
    """Watch clips of a video site in a browser.

    Args:
        name: name of the scenario.
        title: title of the scenario.
        parameters: class of the scenario's parameters.
        site: key of the site's URL among the facts of the service ``dash``.
        app: the web app. It has the elements ``started`` (shown once the picture moves), ``status`` (``playing``,
            ``waiting``, ``ended`` or ``failed: …``), ``back`` (returns from a clip to the list), and each clip by its
            name.
    """

    needs_ui = True
    services = (_SERVICE,)

    def __init__(self, *, name: str, title: str, parameters: type[PlaybackParameters], site: str, app: App) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self.site = site
        self.app = app

    def time_limit_s(self, parameters: PlaybackParameters) -> float:
        """Return the estimated duration plus 30 s, but at least 120 s."""
        return math.ceil(max(MAX_TEST_S, self.estimate_s(parameters) + _SLACK_S))

    def estimate_s(self, parameters: PlaybackParameters) -> float:
        """Return the time to open the site, to wait for the start of each clip, and to watch all clips, s."""
        return _OPEN_S + len(parameters.clips) * (parameters.pause + _USUAL_STARTUP_S + parameters.watch)

    @contextlib.contextmanager
    def open(self, context: Context, parameters: PlaybackParameters) -> Iterator["_Session"]:
        """Start a browser with an empty cache; yield the session that watches clips in it."""
        with context.open_ui() as ui:
            yield _Session(context, parameters, self, ui)


@dataclass
class _Session(Session[PlaybackParameters]):
    scenario: PlaybackScenario
    ui: BrowserUi

    def run(self) -> None:
        """Open the site and watch the clips. Write observations of all player events, even for a clip that fails.

        Raises:
            StepError: a clip does not start in time, or the player gives up or reports no loaded segment.
        """
        context, parameters = self.context, self.parameters
        url = self.scenario.app.start.format(
            url=context.service(_SERVICE)[self.scenario.site],
            adaptation=parameters.adaptation,
            highest=parameters.highest.removesuffix("p"),
        )
        self.ui.open(url, timeout_s=PAGE_TIMEOUT_S)
        for visit, clip in enumerate(parameters.clips, 1):
            time.sleep(parameters.pause)
            try:
                self._watch(clip)
            except StepError:
                with contextlib.suppress(StepError):  # the first error is more specific
                    self._observe(visit, clip)
                raise
            if not self._observe(visit, clip):
                raise StepError(f"{self.scenario.name}: {clip}: the player reported no segment")

    def _watch(self, clip: str) -> None:
        ui, elements, name = self.ui, self.scenario.app.elements, self.scenario.name
        ui.tap(elements[clip])
        patience = self.parameters.patience
        try:
            ui.wait(elements["started"], timeout_s=patience)
        except StepError as error:
            status_text = self._status()
            raise StepError(f"{name}: {clip}: no picture within {patience:g} s, {status_text}: {error}") from error
        leave_at = time.monotonic() + self.parameters.watch
        while (left := leave_at - time.monotonic()) > 0:
            time.sleep(min(_LOOK_EVERY_S, left))
            status = ui.read(elements["status"])
            if status == "ended":
                break
            if status.startswith("failed"):
                raise StepError(f"{name}: {clip}: the player {status}")
        ui.tap(elements["back"])

    def _status(self) -> str:
        with contextlib.suppress(StepError):
            return f"the player reports {self.ui.read(self.scenario.app.elements['status'])!r}"
        return "the player reports no status"

    def _observe(self, visit: int, clip: str) -> int:
        """Write the player's new records as observations, with warnings if the host was slow.

        Returns:
            Number of new records that report a loaded segment.
        """
        records = self.ui.evaluate(_TAKE_SCRIPT)
        for record in records:
            fields = {name: value for name, value in record.items() if name != "event"}
            self.context.observe(record["event"], visit=visit, **fields)
        for text in disturbances(records):
            self.context.warn(f"{clip}: {text}")
        return sum(record["event"] == "segment" for record in records)


Record = Mapping[str, Any]


def disturbances(records: Sequence[Record]) -> list[str]:
    """Return a sentence for each kind of disturbance of a clip that only a slow host can cause.

    Args:
        records: the player's records of one clip, in order: ``sample`` (``at``, ``frames``, ``dropped``), ``playing``,
            ``waiting`` (``buffer_s``).
    """
    samples = [record for record in records if record["event"] == "sample"]
    return [*_dropped(samples), *_gaps(samples), *_stalls(records)]


def _dropped(samples: Sequence[Record]) -> list[str]:
    if not samples or not samples[-1]["frames"]:
        return []
    percent = 100 * samples[-1]["dropped"] / samples[-1]["frames"]
    if percent <= MAX_DROPPED_PERCENT:
        return []
    return [
        f"the host was busy: {percent:.1f} % of the frames came too late for the screen "
        f"(more than {MAX_DROPPED_PERCENT:g} %)"
    ]


def _gaps(samples: Sequence[Record]) -> list[str]:
    longest_s = max((after["at"] - before["at"] for before, after in pairwise(samples)), default=0.0)
    if longest_s <= MAX_CLOCK_GAP_S:
        return []
    return [f"the host was busy: the page was blocked for {longest_s:.1f} s (more than {MAX_CLOCK_GAP_S:g} s)"]


def _stalls(records: Sequence[Record]) -> list[str]:
    began = next((index for index, record in enumerate(records) if record["event"] == "playing"), len(records))
    stalls = sum(
        record["event"] == "waiting" and record.get("buffer_s", 0.0) >= MIN_BUFFER_S for record in records[began:]
    )
    if not stalls:
        return []
    return [f"the host was busy: the player stopped {stalls} times with {MIN_BUFFER_S:g} s or more in its buffer"]
