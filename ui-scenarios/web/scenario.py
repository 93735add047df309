"""Front pages, each loaded with a cold cache: page load time from navigation start to the load event."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from orchestrator.errors import StepError
from orchestrator.scenario import Context, Parameters
from orchestrator.spec.units import DurationS
from orchestrator.ui import Ui
from orchestrator.ui.har import har_from_events

from .page import (
    PROBE_SCRIPT,
    Event,
    LoadedObject,
    check_complete,
    check_protocol,
    load_event_time,
    loaded_objects,
)
from .sites import SIZE_KB_RTT_MS, SLUGS, Slug

BLANK_PAGE = "data:,"
PAGE_TIMEOUT_S = 60.0
MAX_TEST_S = 120.0
"""A test of an app takes at most so long (baerts2015 §4.3), unless its sites need more."""
_SESSION_S, _PAGE_OVERHEAD_S = 1.5, 0.3
_USUAL_KBPS, _USUAL_RTT_S, _ROUND_TRIPS = 7000.0, 0.06, 8

HTTP: Mapping[str, tuple[str, str]] = {"h2": (".lab", "h2"), "h1": (".h1.lab", "http/1.1")}
"""Parameter → end of the host names, ALPN name."""


class WebParameters(Parameters):
    """Parameters of the scenario `web`."""

    sites: tuple[Slug, ...] = Field(SLUGS, min_length=1, description="Which sites of han2015 table 1.")
    http: Literal["h2", "h1"] = Field("h2", description="HTTP/2 or HTTP/1.1, both over TLS.")
    loads: int = Field(1, ge=1, le=20, description="How often each site is loaded, each time in a new browser.")
    settle: DurationS = Field(0.3, description="Rest after each load event.")

    @field_validator("sites")
    @classmethod
    def _once_each(cls, sites: tuple[str, ...]) -> tuple[str, ...]:
        twice = sorted({site for site in sites if sites.count(site) > 1})
        if twice:
            raise ValueError(f"listed twice: {', '.join(twice)} (use 'loads' to load sites more than once)")
        return sites


@dataclass
class _Visit:
    """What a cell has open: the browser, and events that become HAR files when captures have stopped."""

    stack: ExitStack
    ui: Ui | None
    events: dict[str, Sequence[Event]] = field(default_factory=dict)


class WebScenario:
    """`Scenario`: front pages in Chromium."""

    name = "web"
    title = "Web pages"
    parameters = WebParameters
    needs_ui = True

    def __init__(self) -> None:
        self._visits: dict[Path, _Visit] = {}

    def time_limit_s(self, parameters: WebParameters) -> float:
        """120 s, or three times the estimate."""
        return math.ceil(max(MAX_TEST_S, 30 + 3 * self.estimate_s(parameters)))

    def estimate_s(self, parameters: WebParameters) -> float:
        """Transfer at 7 Mbit/s and some round trips for each page, and the start of the browser for each round."""
        pages = sum(_page_estimate_s(site) + parameters.settle for site in parameters.sites)
        return parameters.loads * pages + (parameters.loads - 1) * _SESSION_S

    def prepare(self, context: Context, parameters: WebParameters) -> None:
        """Start the browser."""
        stack = ExitStack()
        self._visits[context.cell_dir] = _Visit(stack, stack.enter_context(context.open_ui()))

    def run(self, context: Context, parameters: WebParameters) -> None:
        """Load every site; StepError when a page is not complete or came by another protocol."""
        visit = self._visits[context.cell_dir]
        for load in range(1, parameters.loads + 1):
            if load > 1:
                visit.stack.close()
                visit.ui = visit.stack.enter_context(context.open_ui())
            for site in context.rng.sample(parameters.sites, len(parameters.sites)):
                _load(context, visit, parameters, site, load)

    def clean_up(self, context: Context, parameters: WebParameters) -> None:
        """Close the browser; write the HAR files."""
        visit = self._visits.pop(context.cell_dir, None)
        if visit is None:
            return
        visit.stack.close()
        for name, events in visit.events.items():
            har = har_from_events(events, node=context.tools.node, appium_dir=context.tools.node_modules.parent)
            path = context.cell_dir / "har" / f"{name}.har"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(har))


def _page_estimate_s(site: str) -> float:
    size_kb, rtt_ms = SIZE_KB_RTT_MS[site]
    round_trips = _ROUND_TRIPS * (_USUAL_RTT_S + rtt_ms / 1000)
    return size_kb * 8 / _USUAL_KBPS + round_trips + _PAGE_OVERHEAD_S


def _load(context: Context, visit: _Visit, parameters: WebParameters, site: str, load: int) -> None:
    ui = visit.ui
    if ui is None:
        raise StepError("web: the browser is not open")
    suffix, protocol = HTTP[parameters.http]
    url = f"https://www.{site}{suffix}/"
    ui.open(BLANK_PAGE)
    ui.network_events()
    try:
        ui.open(url, timeout_s=PAGE_TIMEOUT_S)
        time.sleep(parameters.settle)
        timings = ui.evaluate(PROBE_SCRIPT)
    finally:
        events = visit.events[f"{site}-{load}"] = _events(ui)
    objects = loaded_objects(events)
    check_complete(site, timings["listed"], objects)
    check_protocol(site, objects, protocol)
    fields = page_fields(
        site=site, load=load, url=url, timings=timings, objects=objects, load_event=load_event_time(events)
    )
    context.observe("page", **fields)


def _events(ui: Ui) -> Sequence[Event]:
    try:
        return ui.network_events()
    except StepError:  # the load's own error says more
        return []


def page_fields(
    *,
    site: str,
    load: int,
    url: str,
    timings: Mapping[str, Any],
    objects: Sequence[LoadedObject],
    load_event: float | None,
) -> dict[str, Any]:
    """One observation: times in seconds since navigation start (Navigation Timing level 2)."""
    navigation = timings["navigation"]
    late = [item for item in objects if load_event is None or item.finished is None or item.finished > load_event]
    return {
        "site": site,
        "load": load,
        "url": url,
        "protocol": objects[0].protocol,
        "page_load_time_s": _seconds(navigation["loadEventStart"]),
        "dom_content_loaded_s": _seconds(navigation["domContentLoadedEventStart"]),
        "time_to_first_byte_s": _seconds(navigation["responseStart"]),
        "dns_s": _seconds(navigation["domainLookupEnd"] - navigation["domainLookupStart"]),
        "connect_s": _seconds(navigation["connectEnd"] - navigation["connectStart"]),
        "first_contentful_paint_s": _seconds(timings["first_contentful_paint"]),
        "largest_contentful_paint_s": _seconds(timings["largest_contentful_paint"]),
        "objects": len(objects),
        "hosts": len({item.url.split("/")[2] for item in objects}),
        "body_bytes": sum(item.body_bytes for item in objects),
        "transferred_bytes": sum(item.transferred_bytes for item in objects),
        "objects_after_load": len(late),
    }


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 6)


SCENARIO = WebScenario()
