"""Load the front pages of sites in random order with a cold cache; record the browser's measurements of each load."""

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from mplab.base.errors import StepError
from mplab.drivers.ui import BrowserUi, Event, Instrumented
from mplab.format.sites import Addresses, OriginRtt, Protocol, SiteVariant, load_sites
from mplab.scenarios.base.pages.loaded import (
    PROBE_SCRIPT,
    Timings,
    check_complete,
    check_connections,
    check_protocol,
    connection_ids,
    connections_of,
    load_event_time,
    loaded_objects,
    page_fields,
)
from mplab.scenarios.base.pages.stored import store
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
_START_S = {"chromium": 1.5, "firefox": 4.0}
"""Browser → usual start time, s."""
_PAGE_S = {"chromium": 0.3, "firefox": 0.5}
"""Browser → usual processing time of a page, s, in addition to its transfer time."""


class PagesParameters(Parameters, ABC):
    """Parameters of every scenario that loads pages. A subclass adds the pause after each page."""

    later: ClassVar[frozenset[str]] = frozenset({"tls", "addresses", "origin_rtt"})

    sites: tuple[Slug, ...] = Field(
        SLUGS, min_length=1, description="Sites to load, of han2015 table 1, in random order."
    )
    http: Protocol = Field("h2", description="HTTP/2 or HTTP/1.1.")
    tls: bool = Field(True, description="Encrypt. `false` is clear text, and needs HTTP/1.1.")
    addresses: Addresses = Field(
        "several",
        description="Each host name of a site has its own address, or all have one. "
        "With one, browsers load the whole site over one HTTP/2 connection.",
    )
    origin_rtt: OriginRtt = Field(
        "table", description="Round-trip time between proxy and site: as in han2015 table 1, or none."
    )
    loads: int = Field(1, ge=1, le=20, description="Number of rounds; each has a new browser with an empty profile.")

    @field_validator("sites")
    @classmethod
    def _once_each(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({site for site in sites if sites.count(site) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)} (use 'loads' to load sites more than once)")
        return sites

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.http == "h2" and not self.tls:
            raise ValueError("tls: false needs 'http: h1': browsers speak HTTP/2 only over TLS")
        return self

    @property
    def variant(self) -> SiteVariant:
        """Return the variant of the sites that is loaded."""
        return SiteVariant(self.http, self.addresses, self.origin_rtt)

    @property
    def scheme(self) -> Literal["https", "http"]:
        """Return the scheme of all URLs."""
        return "https" if self.tls else "http"

    def url(self, site: str) -> str:
        """Return the URL of the front page of a site."""
        return self.variant.url(site, self.scheme)

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
    """

    needs_ui = True
    cpus = 1.0

    def __init__(self, *, name: str, title: str, parameters: type[PagesParameters], browser: str) -> None:
        self.name = name
        self.title = title
        self.parameters = parameters
        self.browser = browser

    def time_limit_s(self, parameters: PagesParameters) -> float:
        """Return three times the estimate plus 30 s, but at least 120 s."""
        return math.ceil(max(MAX_TEST_S, 30 + 3 * self.estimate_s(parameters)))

    def estimate_s(self, parameters: PagesParameters) -> float:
        """Return the time to load all pages, plus the pauses, plus the time to restart the browser, s.

        A page is assumed to need 8 round trips and a transfer at 7 Mbit/s.
        """
        browser, rtt = self.browser_of(parameters), parameters.origin_rtt
        pages = sum(_transfer_s(site, rtt) + _PAGE_S[browser] + parameters.rest_s for site in parameters.sites)
        return parameters.loads * pages + (parameters.loads - 1) * _START_S[browser]

    @contextlib.contextmanager
    def open(self, context: Context, parameters: PagesParameters) -> Iterator["_Session"]:
        """Start the browser, and yield the session. At exit close the browser, and store the events of all loads."""
        with self.stored(context, parameters) as events, contextlib.ExitStack() as browser:
            ui = browser.enter_context(context.open_ui())
            yield _Session(context, parameters, self, browser, ui, events)

    @contextlib.contextmanager
    def stored(self, context: Context, parameters: PagesParameters) -> Iterator[dict[str, Sequence[Event]]]:
        """Yield an empty mapping to which `load` adds the events of each load. At exit, even on errors, store them.

        The packet captures have stopped by then.
        """
        events: dict[str, Sequence[Event]] = {}
        try:
            yield events
        finally:
            for name, load_events in events.items():
                store(context, self.browser_of(parameters), name, load_events)

    def load(
        self, ui: Instrumented, events: dict[str, Sequence[Event]], parameters: PagesParameters, site: str, number: int
    ) -> dict[str, object]:
        """Load the front page of a site once.

        Args:
            ui: the browser.
            events: mapping to which the browser's events of the load are added, under ``<site>-<number>``.
            parameters: parameters of the scenario.
            site: name of the site.
            number: number of the round, from 1. Each round has a new browser, which can reuse connection numbers.

        Returns:
            Fields of the observation ``page``.

        Raises:
            StepError: the page is not complete, or it was not loaded as the parameters require: an object came by
                another HTTP version, or the page used another number of connections or one of an earlier load.
        """
        page, name = f"{self.name}: {site}", f"{site}-{number}"
        earlier = [load for other, load in events.items() if other.rpartition("-")[2] == str(number)]
        url = parameters.url(site)
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
        check_protocol(page, objects, ALPN[parameters.http], parameters.scheme)
        connections = connections_of(load_events)
        # Firefox opens more connections, and closes them before their first request.
        one = (parameters.http, parameters.addresses, self.browser_of(parameters)) == ("h2", "one", "chromium")
        kept = connection_ids(load_events) & frozenset[int]().union(*map(connection_ids, earlier))
        check_connections(page, connections, one=one, kept=len(kept))
        return page_fields(
            site=site,
            load=number,
            url=url,
            timings=timings,
            objects=objects,
            connections=connections,
            load_event=load_event_time(load_events),
        )


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


def _transfer_s(site: str, origin_rtt: OriginRtt) -> float:
    (row,) = (row for row in load_sites() if row.slug == site)
    origin_rtt_s = row.rtt_ms / 1000 if origin_rtt == "table" else 0.0
    return row.size_kb * 8 / _USUAL_KBPS + _ROUND_TRIPS * (_USUAL_RTT_S + origin_rtt_s)
