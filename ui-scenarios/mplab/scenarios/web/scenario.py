"""Load front pages in a browser with a cold cache; time each page from navigation start to the load event."""

from typing import ClassVar, Literal

from pydantic import Field

from mplab.format.units import DurationS
from mplab.scenarios.base.pages import PagesParameters, PagesScenario


class WebParameters(PagesParameters):
    """Parameters of the scenario `web`."""

    later: ClassVar[frozenset[str]] = PagesParameters.later | {"browser"}

    settle: DurationS = Field(0.3, description="Rest after each load event.")
    browser: Literal["chromium", "firefox"] = Field(
        "chromium", description="Browser that loads the pages: Chromium or Firefox ESR."
    )

    @property
    def rest_s(self) -> float:
        """Return the pause after each load event, s."""
        return self.settle


class WebScenario(PagesScenario):
    """Load front pages in the browser that the parameters name."""

    def browser_of(self, parameters: PagesParameters) -> str:
        """Return the value of the parameter ``browser``."""
        return parameters.browser if isinstance(parameters, WebParameters) else self.browser


SCENARIO = WebScenario(name="web", title="Web pages", parameters=WebParameters, browser="chromium")
