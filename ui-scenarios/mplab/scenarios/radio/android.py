"""Listen to radio in TuneIn on Android; the app shows a spinner while it buffers."""

from mplab.scenarios.base.android.listening import AndroidListeningScenario

from .scenario import SCENARIO

ANDROID = AndroidListeningScenario(SCENARIO, url="radio_url", button="play", playing="stop")
