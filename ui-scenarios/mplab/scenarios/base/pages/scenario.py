"""Load the front pages of sites in random order with a cold cache; record the browser's measurements of each load."""

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field, field_validator

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi, Event, Instrumented
from mplab.format.sites import SUFFIX, load_sites
from mplab.scenarios.base.pages.loaded import (
    PROBE_SCRIPT,
    Timings,
    check_complete,
    check_protocol,
    load_event_time,
    loaded_objects,
    page_fields,
)
from mplab.scenarios.base.protocol import Context
from mplab.scenarios.base.scenario import Parameters, Scenario, Session

Slug = Literal[
    "news-1",
    "univ",
    "ad",
    "news-2",
    "tech",
    "video",
    "football",
    "shopn-1",
    "radio",
    "wiki",
    "search",
    "ent",
    "image",
    "sport",
    "social",
    "movie",
    "weather",
    "re",
    "airline",
    "shopn-2",
    "gov",
    "travel",
    "dict",
    "finance",
    "market",
]
SLUGS: tuple[Slug, ...] = get_args(Slug)


BLANK_PAGE = "data:,"
PAGE_TIMEOUT_S = 60.0
MAX_TEST_S = 120.0
"""Smallest time limit of a test, s: the longest test of an app in baerts2015 §4.3."""
ALPN: Mapping[str, str] = {"h2": "h2", "h1": "http/1.1"}

_USUAL_KBPS, _USUAL_RTT_S, _ROUND_TRIPS = 7000.0, 0.06, 8


class PagesParameters(Parameters, ABC):
    """Parameters of every scenario that loads pages. A subclass adds the pause after each page."""

    sites: tuple[Slug, ...] = Field(
        SLUGS, min_length=1, description="Sites to load, of han2015 table 1, in random order."
    )
    http: Literal["h2", "h1"] = Field("h2", description="HTTP/2 or HTTP/1.1, both over TLS.")
    loads: int = Field(1, ge=1, le=20, description="Number of rounds; each has a new browser with an empty profile.")

    @field_validator("sites")
    @classmethod
    def _once_each(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({site for site in sites if sites.count(site) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)} (use 'loads' to load sites more than once)")
        return sites

    @property
    @abstractmethod
    def rest_s(self) -> float:
        """Return the pause after each load event, s."""


class PagesScenario(Scenario[PagesParameters]):
    """Base class of scenarios that load front pages in a browser.

    Args:
        name: name of the scenario.
        title: title of the scenario.
        parameters: class of the scenario's parameters.
        browser: ``chromium`` or ``firefox``.
        start_s: usual start time of the browser, s.
        page_s: usual processing time of a page, s, in addition to its transfer time.
    """

    needs_ui = True
    cpus = 1.0

    def __init__(
        self, *, name: str, title: str, parameters: type[PagesParameters], browser: str, start_s: float, page_s: float
    ) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self.browser = browser
        self._start_s = start_s
        self._page_s = page_s

    @abstractmethod
    def store(self, context: Context, name: str, events: Sequence[Event]) -> None:
        """Write the browser's network events of one page load to the cell's folder.

        It is called after the packet captures have stopped.

        Args:
            context: resources of the cell.
            name: name of the load: ``<site>-<number>``.
            events: the browser's events during the load.
        """

    def further_fields(self, page: str, events: Sequence[Event]) -> Mapping[str, object]:
        """Return fields of the observation ``page`` that only this scenario has, from the events of a complete load.

        Raises:
            StepError: the load is invalid. The message begins with `page`.
        """
        return {}

    def time_limit_s(self, parameters: PagesParameters) -> float:
        """Return three times the estimate plus 30 s, but at least 120 s."""
        return math.ceil(max(MAX_TEST_S, 30 + 3 * self.estimate_s(parameters)))

    def estimate_s(self, parameters: PagesParameters) -> float:
        """Return the time to load all pages, plus the pauses, plus the time to restart the browser, s.

        A page is assumed to need 8 round trips and a transfer at 7 Mbit/s.
        """
        pages = sum(_transfer_s(site) + self._page_s + parameters.rest_s for site in parameters.sites)
        return parameters.loads * pages + (parameters.loads - 1) * self._start_s

    @contextlib.contextmanager
    def open(self, context: Context, parameters: PagesParameters) -> Iterator["_Session"]:
        """Start the browser, and yield the session. At exit close the browser, and store the events of all loads."""
        with self.stored(context) as events, contextlib.ExitStack() as browser:
            ui = browser.enter_context(context.open_ui())
            yield _Session(context, parameters, self, browser, ui, events)

    @contextlib.contextmanager
    def stored(self, context: Context) -> Iterator[dict[str, Sequence[Event]]]:
        """Yield an empty mapping to which `load` adds the events of each load. At exit, even on errors, store them."""
        events: dict[str, Sequence[Event]] = {}
        try:
            yield events
        finally:
            for name, load_events in events.items():
                self.store(context, name, load_events)

    def load(
        self, ui: Instrumented, events: dict[str, Sequence[Event]], parameters: PagesParameters, site: str, number: int
    ) -> dict[str, object]:
        """Load the front page of a site once.

        Args:
            ui: the browser.
            events: mapping to which the browser's events of the load are added, under ``<site>-<number>``.
            parameters: parameters of the scenario.
            site: name of the site.
            number: number of the round, from 1.

        Returns:
            Fields of the observation ``page``.

        Raises:
            StepError: the page is not complete, or an object was loaded over another HTTP version.
        """
        page, name = f"{self.name}: {site}", f"{site}-{number}"
        url = f"https://www.{site}{SUFFIX[parameters.http]}/"
        ui.open(BLANK_PAGE)
        ui.network_events()
        try:
            ui.open(url, timeout_s=PAGE_TIMEOUT_S)
            time.sleep(parameters.rest_s)
            timings: Timings = ui.evaluate(PROBE_SCRIPT)
        except StepError:
            with contextlib.suppress(StepError):  # the first error is more specific
                events[name] = ui.network_events()
            raise
        load_events = events[name] = ui.network_events()
        objects = loaded_objects(load_events)
        check_complete(page, timings["listed"], objects)
        check_protocol(page, objects, ALPN[parameters.http])
        further = self.further_fields(page, load_events)
        fields = page_fields(
            site=site, load=number, url=url, timings=timings, objects=objects, load_event=load_event_time(load_events)
        )
        return {**fields, **further}


@dataclass
class _Session(Session[PagesParameters]):
    scenario: PagesScenario
    browser: contextlib.ExitStack
    ui: BrowserUi
    events: dict[str, Sequence[Event]]

    def run(self) -> None:
        """Load every site once in each round, with a new browser for each round. Raises StepError as `load`."""
        context, parameters = self.context, self.parameters
        for load in range(1, parameters.loads + 1):
            if load > 1:
                self.browser.close()
                self.ui = self.browser.enter_context(context.open_ui())
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                context.observe("page", **self.scenario.load(self.ui, self.events, parameters, site, load))


def _transfer_s(site: str) -> float:
    (row,) = (row for row in load_sites() if row.slug == site)
    return row.size_kb * 8 / _USUAL_KBPS + _ROUND_TRIPS * (_USUAL_RTT_S + row.rtt_ms / 1000)
