"""Load pages in Chrome on Android: over DevTools, or timed by the screen."""

from mplab.scenarios.base.android.pages import AndroidPagesScenario

from .scenario import SCENARIO

ANDROID = AndroidPagesScenario(SCENARIO)
