"""A scenario without an app: it does what the script says."""

from collections.abc import Iterator
from contextlib import contextmanager

from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from tests.fakes.script import Script


class FakeParameters(Parameters):
    """Of the fake scenario."""

    wait: DurationS = 0.0


class FakeSession(Session[FakeParameters]):
    """Notes its run as ``scenario.run``."""

    script: Script

    def run(self) -> None:
        """What the user does."""
        self.context.observe("fake", value=1)
        self.script("scenario.run")


class FakeScenario(Scenario[FakeParameters]):
    """Notes the beginning and the end of a session as ``scenario.prepare`` and ``scenario.clean_up``."""

    name = "fake"
    title = "Fake"
    parameters = FakeParameters

    def __init__(self, script: Script) -> None:
        self._script = script
        self.contexts: list[Context] = []

    def time_limit_s(self, parameters: FakeParameters) -> float:
        """Of its run, s."""
        return 30.0 + parameters.wait

    def estimate_s(self, parameters: FakeParameters) -> float:
        """Of its run, s."""
        return 1.0 + parameters.wait

    @contextmanager
    def open(self, context: Context, parameters: FakeParameters) -> Iterator[FakeSession]:
        """A session."""
        self.contexts.append(context)
        try:
            self._script("scenario.prepare")
            session = FakeSession(context, parameters)
            session.script = self._script
            yield session
        finally:
            self._script("scenario.clean_up")


class CheckingScenario(FakeScenario):
    """Has a check of its own."""

    def check(self, context: Context, parameters: FakeParameters) -> None:
        """With open links."""
        del context, parameters
        self._script("scenario.check")
