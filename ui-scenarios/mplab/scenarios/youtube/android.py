"""Watch clips in YouTube's app on Android."""

from mplab.scenarios.base.android.playback import AndroidPlaybackScenario

from .scenario import SCENARIO

ANDROID = AndroidPlaybackScenario(SCENARIO, site="tube")
