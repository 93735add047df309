"""A scenario that is planned and never run: what tests of files and plans need."""

from typing import Any

from mplab.scenarios.base import Context, Parameters


class UnrunScenario:
    """`Scenario` of a given name, parameters and time limit; estimated at a quarter of its limit."""

    needs_ui = False
    services: tuple[str, ...] = ()

    def __init__(self, name: str, parameters: type[Parameters], limit_s: float) -> None:
        self.name = name
        self.title = name
        self.parameters = parameters
        self._limit_s = limit_s

    def time_limit_s(self, parameters: Any) -> float:
        return self._limit_s

    def estimate_s(self, parameters: Any) -> float:
        return self._limit_s / 4

    def prepare(self, context: Context, parameters: Any) -> None:
        raise NotImplementedError

    def run(self, context: Context, parameters: Any) -> None:
        raise NotImplementedError

    def clean_up(self, context: Context, parameters: Any) -> None:
        raise NotImplementedError
