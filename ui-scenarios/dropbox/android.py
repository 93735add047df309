"""Dropbox's own app on Android."""

from orchestrator.scenario.android.upload import AndroidUploadScenario

from .scenario import SCENARIO

ANDROID = AndroidUploadScenario(SCENARIO)
