"""Base classes of the app scenarios in ``ui-scenarios/``."""

from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import AnyScenario, Parameters, Scenario, Session

__all__ = ["AnyScenario", "Context", "Parameters", "Scenario", "Session"]
