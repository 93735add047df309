"""Pages in a browser on Android: by its DevTools where it offers them, as on the virtual phone; else as it is seen."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mplab.base.errors import StepError
from mplab.drivers.ui import Event, Instrumented
from mplab.format.sites import SUFFIX
from mplab.scenarios.base.android.scenario import OPEN_TIMEOUT_S, AndroidScenario, Visit
from mplab.scenarios.base.android.settle import settle
from mplab.scenarios.base.pages import BLANK_PAGE, PagesParameters, PagesScenario
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Session

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


class AndroidPagesScenario(AndroidScenario[PagesParameters]):
    """`Scenario`: front pages in a browser.

    Args:
        virtual: the same on the virtual phone.
    """

    def __init__(self, virtual: PagesScenario) -> None:
        super().__init__(virtual)
        self.pages = virtual

    @contextmanager
    def open(self, context: Context, parameters: PagesParameters) -> Iterator["_Session"]:
        """Open the browser. At the end close it and store what its DevTools said of all loads."""
        with self.pages.stored(context) as events, ExitStack() as browser:
            visit, tab = browser.enter_context(self.start(context))
            yield _Session(context, parameters, self, browser, visit, tab, events)

    @contextmanager
    def start(self, context: Context) -> Iterator[tuple[Visit, Instrumented | None]]:
        """Open a browser that was cleared; one with DevTools is started, too. Raises StepError, DeviceError."""
        with self.visit(context) as visit:
            yield visit, self._begin(context, visit) if visit.app.devtools else None

    def _begin(self, context: Context, visit: Visit) -> Instrumented | None:
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


@dataclass
class _Session(Session[PagesParameters]):
    scenario: AndroidPagesScenario
    browser: ExitStack
    visit: Visit
    tab: Instrumented | None
    """The browser's page by DevTools; None: it offers none, or none are known."""
    events: dict[str, Sequence[Event]]

    def run(self) -> None:
        """Load every site, each round in a browser that was cleared.

        Raises:
            StepError: a page does not come; by DevTools also: it is not complete, or came by another protocol.
        """
        context, parameters = self.context, self.parameters
        for load in range(1, parameters.loads + 1):
            if load > 1:
                self.browser.close()
                self.visit, self.tab = self.browser.enter_context(self.scenario.start(context))
            # The agent has looked the name up: the browser knows of no time for it.
            proxied = {"by_proxy": True, "dns_s": None} if context.app_proxy else {}
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                if self.tab is not None:
                    fields = self.scenario.pages.load(self.tab, self.events, parameters, site, load)
                    context.observe("page", **(fields | proxied), seen_by="devtools")
                    continue
                url = f"https://www.{site}{SUFFIX[parameters.http]}/"
                fields = self._load(url)
                context.observe("page", site=site, load=load, url=url, **(fields | proxied), seen_by="screen")
                time.sleep(parameters.rest_s)

    def _load(self, url: str) -> dict[str, object]:
        """Load one page; what the observation says of it, from the link on. Raises StepError."""
        visit, name = self.visit, self.scenario.name
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
            raise StepError(f"{name}: {url}: the browser says: {end.said}")
        if end.outcome == "waiting":
            raise StepError(f"{name}: {url}: not loaded within {PAGE_TIMEOUT_S:g} s")
        return {
            **dict.fromkeys(UNKNOWN),
            "began": round(began, 3),
            "page_load_time_s": round(end.at - began, 3),
            "resolution_s": round(end.resolution_s, 3),
        }
