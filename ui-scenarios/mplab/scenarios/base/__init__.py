"""App scenarios: the protocol that a folder in ``ui-scenarios/`` implements."""

from mplab.scenarios.base.protocol import (
    Checking,
    Context,
    Parameters,
    Scenario,
    browser_of,
    cpus_of,
    programs_declared_by,
    takes_socks,
)

__all__ = [
    "Checking",
    "Context",
    "Parameters",
    "Scenario",
    "browser_of",
    "cpus_of",
    "programs_declared_by",
    "takes_socks",
]
