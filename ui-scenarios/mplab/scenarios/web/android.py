"""Load pages in Chrome on Android, and time them over DevTools or by the screen."""

from typing import Literal

from pydantic import Field

from mplab.scenarios.base.android.pages import AndroidPagesScenario

from .scenario import SCENARIO, WebParameters


class AndroidWebParameters(WebParameters):
    """Parameters of the scenario `web` on Android, where each browser is the app of another scenario."""

    browser: Literal["chromium"] = Field("chromium", description="Chrome. The scenario `firefox` has Firefox.")


ANDROID = AndroidPagesScenario(SCENARIO, AndroidWebParameters)
