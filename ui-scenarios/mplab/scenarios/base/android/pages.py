"""Load pages in a browser on Android. Time them over DevTools if the browser offers them, otherwise by the screen."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from mplab.base.errors import StepError
from mplab.drivers.ui import Event, Instrumented
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
"""Fields of an observation ``page`` that need DevTools; null where the page was timed by the screen."""


class AndroidPagesScenario(AndroidScenario[PagesParameters]):
    """Load front pages of web sites in a browser on Android.

    Args:
        virtual: the same scenario for the virtual phone.
        parameters: class of the scenario's parameters on Android; None: that of `virtual`.
    """

    def __init__(self, virtual: PagesScenario, parameters: type[PagesParameters] | None = None) -> None:
        super().__init__(virtual)
        self.pages = virtual
        self.parameters = parameters or virtual.parameters

    @contextmanager
    def open(self, context: Context, parameters: PagesParameters) -> Iterator["_Session"]:
        """Prepare the browser, and yield the session.

        At exit stop the browser, and store the DevTools events of all loads.
        """
        with self.pages.stored(context, parameters) as events, ExitStack() as browser:
            visit, tab = browser.enter_context(self.start(context))
            yield _Session(context, parameters, self, browser, visit, tab, events)

    @contextmanager
    def start(self, context: Context) -> Iterator[tuple[Visit, Instrumented | None]]:
        """Prepare the browser with cleared data. Also start it, if its section of ``app.yaml`` has ``devtools``.

        Yields:
            The visit, and a tab of the browser, driven over DevTools. Without DevTools the tab is None, and page
            loads are timed by the screen.

        Raises:
            StepError: the browser is missing, does not open, or its DevTools fail.
            DeviceError: the phone failed.
        """
        with self.visit(context) as visit:
            yield visit, self._begin(context, visit) if visit.app.devtools else None

    def _begin(self, context: Context, visit: Visit) -> Instrumented | None:
        """Start the browser. Return one of its tabs, driven over DevTools; None if the browser offers no DevTools.

        Raises:
            StepError: the browser does not open, or its DevTools fail.
            DeviceError: the phone failed.
        """
        visit.ui.open(visit.app.package, timeout_s=OPEN_TIMEOUT_S)
        visit.ui.wait(visit.element("address"), timeout_s=OPEN_TIMEOUT_S)  # closes dialogs, too
        devtools = visit.stack.enter_context(context.open_devtools(visit.app))
        if devtools is None:
            context.warn(f"{visit.app.package} offers no DevTools: its pages were timed by the screen")
            return None
        tab = visit.stack.enter_context(devtools.tab(timeout_s=OPEN_TIMEOUT_S))
        tab.open(BLANK_PAGE)  # the browser's own start page loads objects
        visit.ui.wait(visit.element("address"), timeout_s=OPEN_TIMEOUT_S)
        return tab


@dataclass
class _Session(Session[PagesParameters]):
    scenario: AndroidPagesScenario
    browser: ExitStack
    visit: Visit
    tab: Instrumented | None
    """Tab of the browser, driven over DevTools; None: pages are timed by the screen."""
    events: dict[str, Sequence[Event]]

    def run(self) -> None:
        """Load every site once in each round. Each round starts with a browser whose data was cleared.

        Raises:
            StepError: a page does not load; or DevTools show that it is incomplete or used another HTTP version.
        """
        context, parameters = self.context, self.parameters
        for load in range(1, parameters.loads + 1):
            if load > 1:
                self.browser.close()
                self.visit, self.tab = self.browser.enter_context(self.scenario.start(context))
            # The agent resolves the name: the browser has no lookup time.
            proxied = {"by_proxy": True, "dns_s": None} if context.app_proxy else {}
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                if self.tab is not None:
                    fields = self.scenario.pages.load(self.tab, self.events, parameters, site, load)
                    context.observe("page", **(fields | proxied), seen_by="devtools")
                    continue
                url = parameters.url(site)
                fields = self._load(url)
                context.observe("page", site=site, load=load, url=url, **(fields | proxied), seen_by="screen")
                time.sleep(parameters.rest_s)

    def _load(self, url: str) -> dict[str, object]:
        """Open a page by its URL. Time its load by the screen. Return fields of the observation ``page``.

        Raises:
            StepError: the page does not load.
        """
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
