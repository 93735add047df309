"""Upload files in Google Drive's app on Android."""

from mplab.scenarios.base.android.upload import AndroidUploadScenario

from .scenario import SCENARIO

ANDROID = AndroidUploadScenario(SCENARIO)
