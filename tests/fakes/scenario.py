"""A scenario without an app: a script decides how its calls end."""

from collections.abc import Iterator
from contextlib import contextmanager

from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters, Scenario, Session
from tests.fakes.script import Script


class FakeParameters(Parameters):
    """Parameters of the fake scenario."""

    wait: DurationS = 0.0


class FakeSession(Session[FakeParameters]):
    """Records its run as ``scenario.run``."""

    script: Script

    def run(self) -> None:
        """Observe one value."""
        self.context.observe("fake", value=1)
        self.script("scenario.run")


class FakeScenario(Scenario[FakeParameters]):
    """Records the start and the end of a session as ``scenario.prepare`` and ``scenario.clean_up``."""

    name = "fake"
    title = "Fake"
    parameters = FakeParameters

    def __init__(self, script: Script) -> None:
        self._script = script
        self.contexts: list[Context] = []

    def time_limit_s(self, parameters: FakeParameters) -> float:
        """Return the time limit of a run, s."""
        return 30.0 + parameters.wait

    def estimate_s(self, parameters: FakeParameters) -> float:
        """Return the estimated duration of a run, s."""
        return 1.0 + parameters.wait

    @contextmanager
    def open(self, context: Context, parameters: FakeParameters) -> Iterator[FakeSession]:
        """Yield a session."""
        self.contexts.append(context)
        try:
            self._script("scenario.prepare")
            session = FakeSession(context, parameters)
            session.script = self._script
            yield session
        finally:
            self._script("scenario.clean_up")


class CheckingScenario(FakeScenario):
    """A scenario that also checks the links."""

    def check(self, context: Context, parameters: FakeParameters) -> None:
        """Record the check, as ``scenario.check``."""
        del context, parameters
        self._script("scenario.check")
