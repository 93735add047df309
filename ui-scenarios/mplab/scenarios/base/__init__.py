"""Base classes of the app scenarios in ``ui-scenarios/``, and the steps, scores and figures that several apps share.

Base classes and steps run in a cell and know nothing of the analysis. Only the packages `scoring` and `figures`, which
read finished cells, import `mplab.analysis`.
"""

from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import AnyScenario, Parameters, Scenario, Session

__all__ = ["AnyScenario", "Context", "Parameters", "Scenario", "Session"]
