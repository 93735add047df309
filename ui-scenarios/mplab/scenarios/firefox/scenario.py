"""Load front pages in Firefox ESR with a cold cache. Pages and measurements are as in the scenario `web`."""

from pydantic import Field

from mplab.format.units import DurationS
from mplab.scenarios.base.pages import PagesParameters, PagesScenario, Slug

TOP_SITES: tuple[Slug, ...] = (
    "search",
    "video",
    "social",
    "wiki",
    "shopn-1",
    "shopn-2",
    "image",
    "news-2",
    "finance",
    "movie",
    "tech",
    "ent",
)
"""Twelve sites, of the kinds at the top of lists of most visited sites (baerts2015 §4.3 visits the top twelve)."""


class FirefoxParameters(PagesParameters):
    """Parameters of the scenario `firefox`."""

    sites: tuple[Slug, ...] = Field(
        TOP_SITES, min_length=1, description="Sites to load, of han2015 table 1, in random order."
    )
    think: DurationS = Field(0.5, description="Rest after each load event.")

    @property
    def rest_s(self) -> float:
        """Return the pause after each load event, s."""
        return self.think


SCENARIO = PagesScenario(name="firefox", title="Web pages in Firefox", parameters=FirefoxParameters, browser="firefox")
