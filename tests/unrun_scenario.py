"""A scenario that is planned and never run: what tests of files and plans need."""

from contextlib import AbstractContextManager

from pydantic import BaseModel

from mplab.scenarios.base import Context, Parameters, Scenario, Session


class UnrunScenario(Scenario[BaseModel]):
    """`Scenario` of a given name, parameters and time limit; estimated at a quarter of its limit."""

    def __init__(self, name: str, parameters: type[Parameters], limit_s: float) -> None:
        self.name = name
        self.title = name
        self.parameters = parameters
        self._limit_s = limit_s

    def time_limit_s(self, parameters: BaseModel) -> float:
        return self._limit_s

    def estimate_s(self, parameters: BaseModel) -> float:
        return self._limit_s / 4

    def open(self, context: Context, parameters: BaseModel) -> AbstractContextManager[Session[BaseModel]]:
        raise NotImplementedError
