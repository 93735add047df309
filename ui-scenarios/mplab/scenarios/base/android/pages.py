"""Pages in a browser on Android: by its DevTools where it offers them, as on the virtual phone; else as it is seen."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mplab.base.errors import StepError
from mplab.format.sites import SUFFIX
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, AndroidScenario, Visit
from mplab.scenarios.base.android.settle import settle
from mplab.scenarios.base.pages import BLANK_PAGE, Event, Instrumented, PagesParameters, PagesScenario
from mplab.scenarios.base.protocol import Context

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
"""What an observation ``page`` says where the browser has DevTools, and the screen does not: null."""


class AndroidPagesScenario(AndroidScenario):
    """`Scenario`: front pages in a browser.

    Args:
        virtual: the same on the virtual phone.
    """

    def __init__(self, virtual: PagesScenario) -> None:
        super().__init__(virtual)
        self._pages = virtual
        self._tabs: dict[Path, Instrumented | None] = {}
        self._events: dict[Path, dict[str, Sequence[Event]]] = {}

    def open(self, context: Context) -> Visit:
        """A browser that was cleared; one with DevTools has been started, too. Raises StepError, DeviceError."""
        visit = super().open(context)
        self._tabs[context.cell_dir] = self.begin(context, visit) if visit.app.devtools else None
        return visit

    def run(self, context: Context, parameters: PagesParameters) -> None:
        """Load every site, each round in a browser that was cleared.

        Raises:
            StepError: a page does not come; by DevTools also: it is not complete, or came by another protocol.
        """
        visit = self.visit(context)
        events = self._events[context.cell_dir] = {}
        for load in range(1, parameters.loads + 1):
            if load > 1:
                visit = self.open(context)
            tab = self._tabs[context.cell_dir]
            # The agent has looked the name up: the browser knows of no time for it.
            proxied = {"by_proxy": True, "dns_s": None} if context.app_proxy else {}
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                if tab is not None:
                    fields = self._pages.load(tab, events, parameters, site, load)
                    context.observe("page", **(fields | proxied), seen_by="devtools")
                    continue
                url = f"https://www.{site}{SUFFIX[parameters.http]}/"
                fields = self.load(context, visit, url, parameters)
                context.observe("page", site=site, load=load, url=url, **(fields | proxied), seen_by="screen")
                time.sleep(parameters.rest_s)

    def clean_up(self, context: Context, parameters: PagesParameters) -> None:
        """End the browser; store what its DevTools said of all loads."""
        super().clean_up(context, parameters)
        self._tabs.pop(context.cell_dir, None)
        for name, events in self._events.pop(context.cell_dir, {}).items():
            self._pages.store(context, name, events)

    def begin(self, context: Context, visit: Visit) -> Instrumented | None:
        """Start the browser; its page by DevTools, or None: it offers none.

        Raises:
            StepError: it offers them, and does not do its part.
            DeviceError: the phone does not.
        """
        visit.ui.open(visit.app.package, timeout_s=OPEN_TIMEOUT_S)
        visit.ui.wait(visit.element("address"), timeout_s=OPEN_TIMEOUT_S)  # what comes in the way is closed
        devtools = visit.stack.enter_context(context.open_devtools(visit.app))
        if devtools is None:
            context.warn(f"{visit.app.package} offers no DevTools: its pages were timed by the screen")
            return None
        tab = visit.stack.enter_context(devtools.tab(timeout_s=OPEN_TIMEOUT_S))
        tab.open(BLANK_PAGE)  # the browser's own first page loads things
        visit.ui.wait(visit.element("address"), timeout_s=OPEN_TIMEOUT_S)
        return tab

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
