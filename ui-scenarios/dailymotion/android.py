"""Dailymotion's own app on Android."""

from orchestrator.scenario.android.playback import AndroidPlaybackScenario

from .scenario import SCENARIO

ANDROID = AndroidPlaybackScenario(SCENARIO, site="motion")
