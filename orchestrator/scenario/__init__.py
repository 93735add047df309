"""App scenarios: the protocol that a folder in ``ui-scenarios/`` implements."""

from orchestrator.scenario.protocol import Context, Parameters, Scenario

__all__ = ["Context", "Parameters", "Scenario"]
