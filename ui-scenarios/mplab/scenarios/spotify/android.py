"""Listen to Spotify on Android. The app shows no spinner, but it shows its playback position in whole seconds."""

from mplab.scenarios.base.android.listening import AndroidListeningScenario

from .scenario import SCENARIO

ANDROID = AndroidListeningScenario(SCENARIO, url="music_url", button="shuffle", playing="play or pause")
