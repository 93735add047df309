"""Use a social network: refresh the feed, post a status, share a photo, check in (baerts2015 §4.3.1)."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.origin.content import MIN_PNG_BYTES, png
from mplab.drivers.ui import BrowserUi
from mplab.drivers.ui.evidence import keep_screen
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from mplab.userfiles.experiments.app import load_app

APP = load_app(Path(__file__).parent)
ACTIONS = ("refresh", "status", "photo", "nearby", "check-in")
"""Actions of a round, in order. ``nearby`` loads the list of places from which a check-in starts."""
MAX_TEST_S = 120.0
"""Longest test of an app in baerts2015 §4.3, s."""
LARGEST_PHOTO_BYTES = 20_000_000

_MARGIN_S = 6.0
"""Time between the end of the last action and the scenario's time limit, s."""
_USUAL_KBPS, _USUAL_ACTION_S, _OPEN_S = 2000.0, 0.5, 1.0
_RESULTS = """
return performance.getEntriesByType('measure').map(entry => ({
  name: entry.name,
  began: (performance.timeOrigin + entry.startTime) / 1000,
  response_time_s: entry.duration / 1000,
  ...entry.detail,
}));
"""


_PHOTO_BOUNDS = between("photo", MIN_PNG_BYTES, LARGEST_PHOTO_BYTES, "a photo has {least} to {most}", write=format_size)


class FacebookParameters(Parameters):
    """Parameters of the scenario `facebook`."""

    rounds: int = Field(3, ge=1, le=20, description="Number of rounds of all actions (baerts2015 §4.3.1).")
    stories: int = Field(
        10,
        ge=1,
        le=50,
        description="Number of new stories at each refresh, each with an avatar, six of ten with a picture: 97 kB of "
        "images on average.",
    )
    photo: Annotated[SizeBytes, _PHOTO_BOUNDS] = Field(
        160_000,
        description="Size of each photo, which cannot be compressed. baerts2015 table 4.1: 503 kB sent in three "
        "rounds.",
    )
    think: Annotated[DurationS, Field(le=30)] = Field(
        1.0, description="Rest before each action except check-in, which continues nearby; the papers give no value."
    )
    limit: Annotated[DurationS, Field(ge=15, le=600)] = Field(
        MAX_TEST_S, description="Time limit of the test, 15 s to 600 s (baerts2015 §4.3)."
    )


class FacebookScenario(Scenario[FacebookParameters]):
    """Use the web app of a social network in rounds. Each round has all `ACTIONS`."""

    name = "facebook"
    title = "Social network"
    parameters = FacebookParameters
    needs_ui = True
    services = ("feed",)

    def time_limit_s(self, parameters: FacebookParameters) -> float:
        """Return the parameter ``limit``, s. An action that does not end in time is recorded as ``unfinished``."""
        return parameters.limit

    def estimate_s(self, parameters: FacebookParameters) -> float:
        """Return the time to open the app, plus that of the rounds, s; at most the parameter ``limit`` minus 6 s.

        Each round takes the time for its photo at 2 Mbit/s, plus 0.5 s per action, plus the pauses between actions.
        """
        photo_s = parameters.photo * 8 / 1000 / _USUAL_KBPS
        round_s = photo_s + len(ACTIONS) * _USUAL_ACTION_S + (len(ACTIONS) - 1) * parameters.think
        return min(_OPEN_S + parameters.rounds * round_s, parameters.limit - _MARGIN_S)

    @contextmanager
    def open(self, context: Context, parameters: FacebookParameters) -> Iterator["_Session"]:
        """Start a browser for the app, and generate the photos to post. Yield the session."""
        with context.open_ui() as ui:
            session = _Session(context, parameters, ui)
            rng = np.random.Generator(np.random.PCG64(context.rng.getrandbits(64)))
            for number in range(1, parameters.rounds + 1):
                photo = png(parameters.photo, rng)
                path = context.scratch_dir / f"photo-{number}.png"
                path.write_bytes(photo)
                session.photos.append(path)
                session.sha256.append(hashlib.sha256(photo).hexdigest())
            yield session


_Result: TypeAlias = Mapping[str, Any]
"""The app's measurement of an action: ``name``, ``began``, ``response_time_s``, and the content shown or sent."""


@dataclass
class _Session(Session[FacebookParameters]):
    ui: BrowserUi
    photos: list[Path] = field(default_factory=list)
    sha256: list[str] = field(default_factory=list)
    """SHA-256 of each photo, in hexadecimal."""
    deadline: float = 0.0
    seen: int = 0
    """Number of measurements already read from the app."""

    def run(self) -> None:
        """Perform the actions of each round, until all rounds are done or the time is up.

        Raises:
            StepError: the app fails, or the server has other content than was sent.
        """
        context, parameters = self.context, self.parameters
        self.deadline = time.monotonic() + context.time_limit_s - _MARGIN_S
        context.observe("plan", rounds=parameters.rounds, actions=parameters.rounds * len(ACTIONS))
        facts = context.service("feed")
        account = f"user-{context.rng.getrandbits(32):08x}"
        start = APP.start.format(account=account, stories=parameters.stories, **facts)
        self.ui.open(start, timeout_s=self.deadline - time.monotonic())
        self.ui.wait(APP.elements["ready"])
        for number in range(1, parameters.rounds + 1):
            for action in ACTIONS:
                if action != "check-in":  # it continues from the end of `nearby`
                    time.sleep(parameters.think)
                if not self._act(action, number):
                    return

    def _act(self, action: str, number: int) -> bool:
        """Perform one action and write its response time. Return False if it did not end before the deadline.

        Raises:
            StepError: a step failed; or the page lacks content, or the server has other content than was sent.
        """
        context = self.context
        text = f"{action} {number}: {context.rng.getrandbits(64):016x}"
        tapped = time.monotonic()
        if tapped < self.deadline:
            self._steps(action, number, text)
            tapped = time.monotonic()
            if self._settle():
                result = self._result(action, number)
                _check(result, action, number, text, self.sha256[number - 1])
                context.observe("action", action=action, round=number, **result)
                return True
        context.observe("unfinished", action=action, round=number, waited_s=round(time.monotonic() - tapped, 3))
        return False

    def _steps(self, action: str, number: int, text: str) -> None:
        """Perform the steps of an action, up to its last tap."""
        ui, elements = self.ui, APP.elements
        if action == "refresh":
            ui.tap(elements["refresh"])
        elif action == "nearby":
            ui.tap(elements["check-in"])
        else:
            if action == "check-in":
                ui.tap(elements["first place"])
                ui.tap(elements["first friend"])
            else:
                ui.tap(elements[action])
            if action == "photo":
                ui.type(elements["file"], str(self.photos[number - 1]))
            ui.type(elements["text"], text)
            ui.tap(elements["post"])

    def _settle(self) -> bool:
        """Wait until the app shows the result of the action. Return False if the deadline comes first."""
        try:
            self.ui.wait(APP.elements["settled"], timeout_s=max(0.1, self.deadline - time.monotonic()))
        except StepError:
            if time.monotonic() < self.deadline:
                raise
            return False
        return True

    def _result(self, action: str, number: int) -> _Result:
        results: list[_Result] = self.ui.evaluate(_RESULTS)
        if len(results) != self.seen + 1 or results[-1]["name"] != action:
            keep_screen(self.ui, self.context.cell_dir / "screenshots" / f"{action}-{number}.png")
            problem = self.ui.read(APP.elements["error"]) or f"measured {[entry['name'] for entry in results]}"
            raise StepError(f"facebook: {action} (round {number}): the app says: {problem}")
        self.seen += 1
        return {key: value for key, value in results[-1].items() if key != "name"}


def _check(result: _Result, action: str, number: int, text: str, sha256: str) -> None:
    """Raise StepError if pictures are missing on the page, or if the server's post differs from the sent post."""
    problem = ""
    if action == "refresh":
        for field in ("pictures", "picture_bytes"):
            if result[field] != result[f"{field}_loaded"]:
                problem = f"{field}: {result[f'{field}_loaded']} of {result[field]} came"
    elif action != "nearby" and result["text"] != text:
        problem = f"the post says {result['text']!r}, {text!r} was sent"
    elif action == "photo" and result["photo_sha256"] != sha256:
        problem = f"the server has another photo ({result['photo_bytes']} bytes) than was sent"
    elif action == "check-in" and not (result["place"] and result["friend"]):
        problem = "the post has no place or no friend"
    if problem:
        raise StepError(f"facebook: {action} (round {number}): {problem}")


SCENARIO = FacebookScenario()
