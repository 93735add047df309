"""Load pages in Chrome on Android, and time them over DevTools or by the screen."""

from mplab.scenarios.base.android.pages import AndroidPagesScenario

from .scenario import SCENARIO

ANDROID = AndroidPagesScenario(SCENARIO)
