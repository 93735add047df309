"""Pages in a browser that is not instrumented: from the link to the end of its progress bar, as it is seen."""

import time
from typing import Any

from orchestrator.errors import StepError
from orchestrator.origin.sites import SUFFIX
from orchestrator.scenario.android.scenario import AndroidScenario, Visit
from orchestrator.scenario.android.settle import settle
from orchestrator.scenario.pages import PagesParameters
from orchestrator.scenario.protocol import Context

PAGE_TIMEOUT_S = 60.0
UNKNOWN = (
    "dom_content_loaded_s",
    "time_to_first_byte_s",
    "dns_s",
    "connect_s",
    "first_contentful_paint_s",
    "largest_contentful_paint_s",
    "objects",
    "hosts",
    "body_bytes",
    "transferred_bytes",
    "objects_after_load",
    "connections",
)
"""What an observation ``page`` says on the virtual phone, and the screen does not: null."""


class AndroidPagesScenario(AndroidScenario):
    """`Scenario`: front pages in a browser, each opened by its link."""

    def run(self, context: Context, parameters: PagesParameters) -> None:
        """Load every site, each round in a browser that was cleared.

        Raises:
            StepError: a page does not come.
        """
        visit = self.visit(context)
        for load in range(1, parameters.loads + 1):
            if load > 1:
                visit = self.open(context)
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                url = f"https://www.{site}{SUFFIX[parameters.http]}/"
                fields = self.load(context, visit, url, parameters)
                context.observe("page", site=site, load=load, url=url, **fields)
                time.sleep(parameters.rest_s)

    def load(self, context: Context, visit: Visit, url: str, parameters: PagesParameters) -> dict[str, Any]:
        """Load one page; what the observation says of it, from the link on. Raises StepError."""
        began = time.time()
        visit.ui.open(visit.app.start.format(url=url), timeout_s=PAGE_TIMEOUT_S)
        end = settle(
            visit.ui,
            since=began,
            for_s=PAGE_TIMEOUT_S,
            busy=visit.element("loading"),
            done=visit.element("page"),
            failed=visit.element("problem"),
            watch=visit.watch,
        )
        if end.outcome == "failed":
            raise StepError(f"{self.name}: {url}: the browser says: {end.said}")
        if end.outcome == "waiting":
            raise StepError(f"{self.name}: {url}: not loaded within {PAGE_TIMEOUT_S:g} s")
        return {
            **dict.fromkeys(UNKNOWN),
            "began": round(began, 3),
            "page_load_time_s": round(end.at - began, 3),
            "resolution_s": round(end.resolution_s, 3),
        }
