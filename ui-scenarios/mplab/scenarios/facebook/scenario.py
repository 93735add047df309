"""A social network: refresh the feed, post a status, share a photo, check in (baerts2015 §4.3.1)."""

import hashlib
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from mplab.base.errors import StepError
from mplab.drivers.origin.content import MIN_PNG_BYTES, png
from mplab.drivers.ui import Ui
from mplab.drivers.ui.evidence import keep_screen
from mplab.format.units import DurationS, SizeBytes, between, format_size
from mplab.scenarios.base import Context, Parameters
from mplab.userfiles.app import load_app

APP = load_app(Path(__file__).parent)
ACTIONS = ("refresh", "status", "photo", "nearby", "check-in")
"""What the user waits for, in the order of a round. ``nearby`` is the list of places that a check-in begins with."""
MAX_TEST_S = 120.0
"""A test of an app takes at most so long (baerts2015 §4.3)."""
LARGEST_PHOTO_BYTES = 20_000_000

_MARGIN_S = 6.0
"""So long before the end of the cell's time the scenario stops waiting."""
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

    rounds: int = Field(3, ge=1, le=20, description="How often everything is done.")
    stories: int = Field(10, ge=1, le=50, description="New stories at each refresh.")
    photo: Annotated[SizeBytes, _PHOTO_BOUNDS] = Field(160_000, description="Size of each photo.")
    think: Annotated[DurationS, Field(le=30)] = Field(1.0, description="Before each tap that starts something.")
    limit: Annotated[DurationS, Field(ge=15, le=600)] = Field(MAX_TEST_S, description="Of the test.")


@dataclass
class _Visit:
    """What a cell has open, and what it needs."""

    stack: ExitStack
    ui: Ui
    photos: list[Path]
    sha256: list[str]
    deadline: float = 0.0
    seen: int = 0


class FacebookScenario:
    """`Scenario`: a social network's app."""

    name = "facebook"
    title = "Social network"
    parameters = FacebookParameters
    needs_ui = True
    services = ("feed",)

    def __init__(self) -> None:
        self._visits: dict[Path, _Visit] = {}

    def time_limit_s(self, parameters: FacebookParameters) -> float:
        """What the parameters say: 120 s. What does not fit is told."""
        return parameters.limit

    def estimate_s(self, parameters: FacebookParameters) -> float:
        """Photos at 2 Mbit/s, half a second for each action, and the rests."""
        photo_s = parameters.photo * 8 / 1000 / _USUAL_KBPS
        round_s = photo_s + len(ACTIONS) * _USUAL_ACTION_S + (len(ACTIONS) - 1) * parameters.think
        return min(_OPEN_S + parameters.rounds * round_s, parameters.limit - _MARGIN_S)

    def prepare(self, context: Context, parameters: FacebookParameters) -> None:
        """Take the photos; start the app."""
        stack = ExitStack()
        visit = _Visit(stack, stack.enter_context(context.open_ui()), [], [])
        self._visits[context.cell_dir] = visit
        rng = np.random.Generator(np.random.PCG64(context.rng.getrandbits(64)))
        for number in range(1, parameters.rounds + 1):
            photo = png(parameters.photo, rng)
            path = context.scratch_dir / f"photo-{number}.png"
            path.write_bytes(photo)
            visit.photos.append(path)
            visit.sha256.append(hashlib.sha256(photo).hexdigest())

    def run(self, context: Context, parameters: FacebookParameters) -> None:
        """Rounds, until all are done or the time is up. StepError when the app fails, or shows what was not sent."""
        visit = self._visits[context.cell_dir]
        visit.deadline = time.monotonic() + context.time_limit_s - _MARGIN_S
        context.observe("plan", rounds=parameters.rounds, actions=parameters.rounds * len(ACTIONS))
        facts = context.service("feed")
        account = f"user-{context.rng.getrandbits(32):08x}"
        start = APP.start.format(account=account, stories=parameters.stories, **facts)
        visit.ui.open(start, timeout_s=visit.deadline - time.monotonic())
        visit.ui.wait(APP.elements["ready"])
        for number in range(1, parameters.rounds + 1):
            for action in ACTIONS:
                if action != "check-in":  # it goes on where `nearby` has ended
                    time.sleep(parameters.think)
                if not _act(context, visit, action, number):
                    return

    def clean_up(self, context: Context, parameters: FacebookParameters) -> None:
        """Close the app."""
        visit = self._visits.pop(context.cell_dir, None)
        if visit is not None:
            visit.stack.close()


def _act(context: Context, visit: _Visit, action: str, number: int) -> bool:
    """Do one action and observe it; False when the time is up."""
    text = f"{action} {number}: {context.rng.getrandbits(64):016x}"
    tapped = time.monotonic()
    if tapped < visit.deadline:
        _steps(visit, action, number, text)
        tapped = time.monotonic()
        if _settle(visit):
            result = _result(context, visit, action, number)
            _check(result, action, number, text, visit.sha256[number - 1])
            context.observe("action", action=action, round=number, **result)
            return True
    context.observe("unfinished", action=action, round=number, waited_s=round(time.monotonic() - tapped, 3))
    return False


def _steps(visit: _Visit, action: str, number: int, text: str) -> None:
    """What the user does, up to the tap that he then waits for."""
    ui, elements = visit.ui, APP.elements
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
            ui.type(elements["file"], str(visit.photos[number - 1]))
        ui.type(elements["text"], text)
        ui.tap(elements["post"])


def _settle(visit: _Visit) -> bool:
    """Wait until the app has an answer; False when the time is up first."""
    try:
        visit.ui.wait(APP.elements["settled"], timeout_s=max(0.1, visit.deadline - time.monotonic()))
    except StepError:
        if time.monotonic() < visit.deadline:
            raise
        return False
    return True


def _result(context: Context, visit: _Visit, action: str, number: int) -> dict[str, Any]:
    found: list[dict[str, Any]] = visit.ui.evaluate(_RESULTS)
    if len(found) != visit.seen + 1 or found[-1]["name"] != action:
        keep_screen(visit.ui, context.cell_dir / "screenshots" / f"{action}-{number}.png")
        problem = visit.ui.read(APP.elements["error"]) or f"measured {[entry['name'] for entry in found]}"
        raise StepError(f"facebook: {action} (round {number}): the app says: {problem}")
    visit.seen += 1
    return {key: value for key, value in found[-1].items() if key != "name"}


def _check(result: dict[str, Any], action: str, number: int, text: str, sha256: str) -> None:
    """Raise StepError when something is missing, or when the server has something else than what was sent."""
    problem = ""
    if action == "refresh":
        for what in ("pictures", "picture_bytes"):
            if result[what] != result[f"{what}_loaded"]:
                problem = f"{what}: {result[f'{what}_loaded']} of {result[what]} came"
    elif action != "nearby" and result["text"] != text:
        problem = f"the post says {result['text']!r}, {text!r} was sent"
    elif action == "photo" and result["photo_sha256"] != sha256:
        problem = f"the server has another photo ({result['photo_bytes']} bytes) than was sent"
    elif action == "check-in" and not (result["place"] and result["friend"]):
        problem = "the post has no place or no friend"
    if problem:
        raise StepError(f"facebook: {action} (round {number}): {problem}")


SCENARIO = FacebookScenario()
