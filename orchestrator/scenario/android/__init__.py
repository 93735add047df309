"""What scenarios do with apps on Android: steps that several of them share."""

from orchestrator.scenario.android.scenario import AndroidScenario, Visit
from orchestrator.scenario.android.settle import SHORT_EVERY_S, Settled, settle

__all__ = ["SHORT_EVERY_S", "AndroidScenario", "Settled", "Visit", "settle"]
