"""Use Facebook's app on Android, and time its responses by the screen."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from mplab.base.errors import StepError
from mplab.drivers.origin.content import png
from mplab.scenarios.base import Context, Session
from mplab.scenarios.base.android import SHORT_EVERY_S, AndroidScenario, Visit, settle
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, choose_file, put_file, remove_files

from .scenario import ACTIONS, SCENARIO, FacebookParameters

_MARGIN_S = 6.0


class AndroidFacebookScenario(AndroidScenario[FacebookParameters]):
    """Use Facebook's app on Android, in rounds of these actions: refresh, status, photo, nearby, check-in.

    In the observation of a refresh, ``texts_s`` (time until the texts can be read) is null: the screen does not show
    this time.
    """

    @contextmanager
    def open(self, context: Context, parameters: FacebookParameters) -> Iterator["_Session"]:
        """Prepare the app and copy the photos to the phone. Yield the session; delete the photos at exit."""
        targets: list[str] = []
        with self.visit(context) as visit:
            visit.stack.callback(remove_files, context, targets)
            session = _Session(context, parameters, visit)
            rng = np.random.Generator(np.random.PCG64(context.rng.getrandbits(64)))
            for number in range(1, parameters.rounds + 1):
                path = context.scratch_dir / session.photo(number)
                path.write_bytes(png(parameters.photo, rng))
                targets.append(put_file(context, path))
            yield session


@dataclass
class _Session(Session[FacebookParameters]):
    visit: Visit

    def photo(self, number: int) -> str:
        """Return the file name of the photo of round `number`. The name is unique to the cell."""
        return f"{self.context.cell_dir.name.partition('.')[0]}-photo-{number}.png"

    def run(self) -> None:
        """Perform the actions of each round, until all rounds are done or the time is up.

        Raises:
            StepError: an element is missing, or the app reports a failure.
        """
        context, parameters, visit = self.context, self.parameters, self.visit
        deadline = time.monotonic() + context.time_limit_s - _MARGIN_S
        context.observe("plan", rounds=parameters.rounds, actions=parameters.rounds * len(ACTIONS))
        visit.ui.open(visit.app.start, timeout_s=OPEN_TIMEOUT_S)
        visit.ui.wait(visit.element("feed"), timeout_s=OPEN_TIMEOUT_S)
        for number in range(1, parameters.rounds + 1):
            for action in ACTIONS:
                if action != "check-in":  # it continues from the end of `nearby`
                    time.sleep(parameters.think)
                if not self._act(action, number, deadline):
                    return

    def _act(self, action: str, number: int, deadline: float) -> bool:
        """Perform one action and write its response time. Return False if it did not end before the deadline.

        Raises:
            StepError: the app reports that the action failed.
        """
        context, visit = self.context, self.visit
        waited_s = 0.0
        if time.monotonic() < deadline:
            text = f"{action} {number}: {context.rng.getrandbits(64):016x}"
            began = self._steps(action, text, self.photo(number))
            busy_name, done_name = {"refresh": ("loading", "feed"), "nearby": ("loading", "first place")}.get(
                action, ("posting", "posted")
            )
            end = settle(
                visit.ui,
                since=began,
                for_s=deadline - time.monotonic(),
                busy=visit.element(busy_name),
                done=visit.element(done_name),
                failed=visit.element("failed"),
                every_s=SHORT_EVERY_S,
                watch=visit.watch,
            )
            if end.outcome == "failed":
                raise StepError(f"facebook: {action} (round {number}): the app says: {end.said}")
            if end.outcome == "done":
                fields = {"texts_s": None} if action == "refresh" else {}
                context.observe(
                    "action",
                    action=action,
                    round=number,
                    began=round(began, 3),
                    response_time_s=round(end.at - began, 3),
                    resolution_s=round(end.resolution_s, 3),
                    **fields,
                )
                return True
            waited_s = end.at - began
        context.observe("unfinished", action=action, round=number, waited_s=round(waited_s, 3))
        return False

    def _steps(self, action: str, text: str, photo: str) -> float:
        """Perform the steps of an action, up to its last tap. Return the unix time of that tap, s."""
        ui, element = self.visit.ui, self.visit.element
        if action == "refresh":
            ui.tap(element("feed"))
            return time.time()
        if action == "check-in":
            ui.tap(element("first place"))
            ui.tap(element("first friend"))
        else:
            ui.tap(element("compose"))
        if action == "nearby":
            ui.tap(element("check in"))
            return time.time()
        if action == "photo":
            ui.tap(element("photo"))
            choose_file(self.visit, photo)
        ui.type(element("text"), text)
        ui.tap(element("post"))
        return time.time()


ANDROID = AndroidFacebookScenario(SCENARIO)
