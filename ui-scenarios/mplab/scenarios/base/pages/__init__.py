"""Load front pages of web sites, as the scenarios `web` and `firefox` do."""

from mplab.scenarios.base.pages.scenario import BLANK_PAGE, SLUGS, PagesParameters, PagesScenario, Slug

__all__ = ["BLANK_PAGE", "SLUGS", "PagesParameters", "PagesScenario", "Slug"]
