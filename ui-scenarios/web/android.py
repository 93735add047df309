"""Chrome on Android, as its user sees it."""

from orchestrator.scenario.android.pages import AndroidPagesScenario

from .scenario import SCENARIO

ANDROID = AndroidPagesScenario(SCENARIO)
