"""Load pages in Firefox on Android, timed by the screen."""

from mplab.scenarios.base.android.pages import AndroidPagesScenario

from .scenario import SCENARIO

ANDROID = AndroidPagesScenario(SCENARIO)
