"""Firefox on Android, as its user sees it."""

from mplab.scenarios.base.android.pages import AndroidPagesScenario

from .scenario import SCENARIO

ANDROID = AndroidPagesScenario(SCENARIO)
