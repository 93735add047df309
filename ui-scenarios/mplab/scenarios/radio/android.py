"""Listen to TuneIn on Android, which shows when it buffers."""

from mplab.scenarios.base.android.listening import AndroidListeningScenario

from .scenario import SCENARIO

ANDROID = AndroidListeningScenario(SCENARIO, url="radio_url", button="play", playing="stop")
