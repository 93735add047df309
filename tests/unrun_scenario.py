"""Scenario for tests of files and plans: it is planned and never run."""

from contextlib import AbstractContextManager

from pydantic import BaseModel

from mplab.scenarios.base import Context, Parameters, Scenario, Session


class UnrunScenario(Scenario[BaseModel]):
    """`Scenario` with a given name, parameters and time limit (seconds); its estimate is a quarter of the limit."""

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
