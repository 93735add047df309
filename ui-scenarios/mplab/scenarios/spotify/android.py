"""Spotify's own app on Android: it shows no spinner, but how far it is, in whole seconds."""

from mplab.scenarios.base.android.listening import AndroidListeningScenario

from .scenario import SCENARIO

ANDROID = AndroidListeningScenario(SCENARIO, url="music_url", button="shuffle", playing="play or pause")
