"""Front pages of sites, as the scenarios `web` and `firefox` load them."""

from orchestrator.scenario.pages.loaded import Event
from orchestrator.scenario.pages.scenario import BLANK_PAGE, Instrumented, PagesParameters, PagesScenario
from orchestrator.scenario.pages.sites import SLUGS, Slug

__all__ = ["BLANK_PAGE", "SLUGS", "Event", "Instrumented", "PagesParameters", "PagesScenario", "Slug"]
