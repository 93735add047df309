"""A scenario without an app: it does what the script says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pydantic import BaseModel

from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from tests.fakes.script import Script


class FakeParameters(Parameters):
    """Of the fake scenario."""

    wait: DurationS = 0.0


@dataclass
class FakeSession(Session[BaseModel]):
    """Notes ``scenario.run``."""

    context: Context
    parameters: BaseModel
    script: Script

    def run(self) -> None:
        """What the user does."""
        self.context.observe("fake", value=1)
        self.script("scenario.run")


class FakeScenario(Scenario[BaseModel]):
    """Notes its calls as ``scenario.prepare``, ``scenario.run``, ``scenario.clean_up``."""

    name = "fake"
    title = "Fake"
    parameters = FakeParameters

    def __init__(self, script: Script) -> None:
        self._script = script
        self.contexts: list[Context] = []

    def time_limit_s(self, parameters: BaseModel) -> float:
        """Of its run, s."""
        return 30.0 + _wait(parameters)

    def estimate_s(self, parameters: BaseModel) -> float:
        """Of its run, s."""
        return 1.0 + _wait(parameters)

    @contextmanager
    def open(self, context: Context, parameters: BaseModel) -> Iterator[Session[BaseModel]]:
        """Prepare, and clean up at the end."""
        self.contexts.append(context)
        try:
            self._script("scenario.prepare")
            yield FakeSession(context, parameters, self._script)
        finally:
            self._script("scenario.clean_up")


class CheckingScenario(FakeScenario):
    """Has a check of its own."""

    def check(self, context: Context, parameters: BaseModel) -> None:
        """With open links."""
        self._script("scenario.check")


def _wait(parameters: BaseModel) -> float:
    return parameters.wait if isinstance(parameters, FakeParameters) else 0.0
