"""A scenario without an app: it does what the script says."""

from mplab.format.units import DurationS
from mplab.scenarios.base import Context, Parameters
from tests.fakes.script import Script


class FakeParameters(Parameters):
    """Of the fake scenario."""

    wait: DurationS = 0.0


class FakeScenario:
    """Notes its calls as ``scenario.prepare``, ``scenario.run``, ``scenario.clean_up``."""

    name = "fake"
    title = "Fake"
    parameters: type[Parameters] = FakeParameters
    needs_ui = False
    services: tuple[str, ...] = ()

    def __init__(self, script: Script) -> None:
        self._script = script
        self.contexts: list[Context] = []

    def time_limit_s(self, parameters: FakeParameters) -> float:
        """Of its run, s."""
        return 30.0 + parameters.wait

    def estimate_s(self, parameters: FakeParameters) -> float:
        """Of its run, s."""
        return 1.0 + parameters.wait

    def prepare(self, context: Context, parameters: FakeParameters) -> None:
        """Before captures."""
        del parameters
        self.contexts.append(context)
        self._script("scenario.prepare")

    def run(self, context: Context, parameters: FakeParameters) -> None:
        """What the user does."""
        del parameters
        context.observe("fake", value=1)
        self._script("scenario.run")

    def clean_up(self, context: Context, parameters: FakeParameters) -> None:
        """After captures."""
        del context, parameters
        self._script("scenario.clean_up")


class CheckingScenario(FakeScenario):
    """Has a check of its own."""

    def check(self, context: Context, parameters: FakeParameters) -> None:
        """With open links."""
        del context, parameters
        self._script("scenario.check")
