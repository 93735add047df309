"""App scenarios: the base class that a folder in ``ui-scenarios/`` implements."""

from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import AnyScenario, Parameters, Scenario, Session

__all__ = ["AnyScenario", "Context", "Parameters", "Scenario", "Session"]
