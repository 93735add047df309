"""Base classes and steps that several scenarios share to drive apps on Android."""

from mplab.scenarios.base.android.scenario import AndroidScenario, Visit
from mplab.scenarios.base.android.settle import SHORT_EVERY_S, Settled, settle

__all__ = ["SHORT_EVERY_S", "AndroidScenario", "Settled", "Visit", "settle"]
