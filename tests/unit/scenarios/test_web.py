"""The web scenario on a browser that plays back events."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.format.sites import load_sites
from mplab.scenarios.base.pages import SLUGS, loaded

PAGE = {"https://www.wiki.lab/": 1000, "https://img1.wiki.lab/i/7.png": 500, "https://www.wiki.lab/j/3.js": 70}
LISTED = {"www": {"/": 1000, "/j/3.js": 70}, "img1": {"/i/7.png": 500}}
NAVIGATION = {
    "loadEventStart": 812.5,
    "domContentLoadedEventStart": 500.0,
    "responseStart": 130.0,
    "domainLookupStart": 1.0,
    "domainLookupEnd": 21.0,
    "connectStart": 21.0,
    "connectEnd": 100.0,
}


class PlaybackUi:
    """A browser that reports the same events and timings for every page."""

    def __init__(
        self, events: Sequence[Mapping[str, Any]], listed: Any = LISTED, error: Exception | None = None
    ) -> None:
        self._events, self._listed, self._error = events, listed, error
        self.opened: list[str] = []

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.opened.append(target)
        if self._error is not None and target.startswith("https"):
            raise self._error

    def network_events(self) -> Sequence[Mapping[str, Any]]:
        return self._events if self.opened[-1].startswith("https") else []

    def evaluate(self, script: str) -> Any:
        return {
            "navigation": NAVIGATION,
            "first_contentful_paint": 300.0,
            "largest_contentful_paint": None,
            "listed": self._listed,
        }


def parameters(web: SimpleNamespace, **given: Any) -> Any:
    return web.scenario.SCENARIO.parameters.model_validate({"sites": ["wiki"], "settle": "0 s", **given})


@pytest.fixture(autouse=True)
def _no_node(web: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web.scenario, "har_from_events", lambda events, **_: {"log": {"entries": len(events)}})


def visit(web: SimpleNamespace, cell: Any, given: Any) -> None:
    scenario = web.scenario.SCENARIO
    cell.run(scenario, given)


def test_a_page(web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]) -> None:
    ui = PlaybackUi(make_events(PAGE))
    cell = make_cell(ui=ui)
    visit(web, cell, parameters(web))
    assert ui.opened == ["data:,", "https://www.wiki.lab/"]
    page = cell.observations[0]
    expected = {
        "event": "page",
        "site": "wiki",
        "load": 1,
        "protocol": "h2",
        "page_load_time_s": 0.8125,
        "dns_s": 0.02,
        "time_to_first_byte_s": 0.13,
        "first_contentful_paint_s": 0.3,
        "largest_contentful_paint_s": None,
        "objects": 3,
        "hosts": 2,
        "body_bytes": 1570,
        "transferred_bytes": 1870,
        "objects_after_load": 0,
    }
    assert {name: page[name] for name in expected} == expected
    assert (cell.context.cell_dir / "har" / "wiki-1.har").exists()


def test_each_round_has_a_browser_of_its_own_and_every_site_once(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    cell = make_cell(ui=PlaybackUi(make_events(PAGE)))
    visit(web, cell, parameters(web, sites=["wiki", "search"], loads=2))
    assert cell.opened == 2
    visits = [(page["load"], page["site"]) for page in cell.observations]
    assert sorted(visits) == [(1, "search"), (1, "wiki"), (2, "search"), (2, "wiki")]


def test_http1_sites_have_other_names(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    events = make_events({url.replace(".lab", ".h1.lab"): size for url, size in PAGE.items()}, protocol="http/1.1")
    ui = PlaybackUi(events)
    cell = make_cell(ui=ui)
    visit(web, cell, parameters(web, http="h1"))
    assert ui.opened[-1] == "https://www.wiki.h1.lab/"
    assert cell.observations[0]["protocol"] == "http/1.1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"without": ["https://www.wiki.lab/j/3.js"]}, "web: wiki: 1 of 3 objects were not loaded: www:/j/3.js"),
        (
            {"more": {"https://ads.wiki.lab/x": 1}},
            "web: wiki: 1 objects were loaded that the page does not list: ads:/x",
        ),
        (
            {"more": {"https://img1.wiki.lab/i/7.png": 499}},
            "web: wiki: 1 objects are not complete: img1:/i/7.png (the first: status 200, 499 of 500 bytes)",
        ),
        (
            {"protocol": "http/1.1"},
            "web: wiki: 3 objects came by http/1.1, h2 was requested: www:/, img1:/i/7.png, www:/j/3.js",
        ),
    ],
)
def test_a_page_that_is_not_what_was_asked(
    web: SimpleNamespace,
    make_cell: Callable[..., Any],
    make_events: Callable[..., Any],
    change: dict[str, Any],
    message: str,
) -> None:
    objects = {url: size for url, size in PAGE.items() if url not in change.get("without", [])}
    events = make_events(objects | change.get("more", {}), protocol=change.get("protocol", "h2"))
    cell = make_cell(ui=PlaybackUi(events))
    with pytest.raises(StepError, match=f"^{re.escape(message)}$"):
        visit(web, cell, parameters(web))
    assert cell.observations == []
    assert (cell.context.cell_dir / "har" / "wiki-1.har").exists()


def test_a_page_of_somebody_else(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    cell = make_cell(ui=PlaybackUi(make_events(PAGE), listed=None))
    with pytest.raises(StepError, match="wiki: the page has no list of its objects"):
        visit(web, cell, parameters(web))


def test_an_error_of_the_browser_is_passed_on(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    cell = make_cell(ui=PlaybackUi(make_events(PAGE), error=StepError("browser: the browser has ended")))
    with pytest.raises(StepError, match="the browser has ended"):
        visit(web, cell, parameters(web))


def test_objects_that_did_not_end_well(make_events: Callable[..., Any]) -> None:
    events = [event for event in make_events(PAGE) if event["method"] != "Network.loadingFinished"]
    with pytest.raises(StepError, match="3 objects are not complete"):
        loaded.check_complete("web: wiki", LISTED, loaded.loaded_objects(events))


def test_objects_after_the_load_event_are_counted(make_events: Callable[..., Any]) -> None:
    events = make_events(PAGE, load_at=2.5)
    fields = loaded.page_fields(
        site="wiki",
        load=1,
        url="",
        timings=PlaybackUi(events).evaluate(""),
        objects=loaded.loaded_objects(events),
        load_event=loaded.load_event_time(events),
    )
    assert fields["objects_after_load"] == 1


def test_scenario_and_origin_have_the_same_sites() -> None:
    assert tuple(site.slug for site in load_sites()) == SLUGS


def test_time_limits(web: SimpleNamespace) -> None:
    scenario = web.scenario.SCENARIO
    few, everything = parameters(web, sites=["wiki", "search"]), scenario.parameters()
    assert scenario.estimate_s(few) < 10
    assert scenario.time_limit_s(few) == 120
    assert scenario.time_limit_s(everything) > 2 * scenario.estimate_s(everything)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sites: [wikki]", "Did you mean 'wiki'?"),
        ("sites: []", "at least 1"),
        ("sites: [wiki, wiki]", "listed twice: wiki (use 'loads' to load sites more than once)"),
        ("http: h3", "Allowed: h2, h1"),
        ("loads: 0", "found 0, allowed: 1…20"),
        ("settle: 1", "a number needs a unit: ms, s"),
        ("site: wiki", "unknown key 'site'"),
    ],
)
def test_wrong_parameters(
    web: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, message: str
) -> None:
    assert message in "\n".join(problems(web.scenario.SCENARIO, text))


def observation(site: str, load: int, page_load_time_s: float, largest: float | None) -> dict[str, Any]:
    return {
        "t": 0,
        "event": "page",
        "site": site,
        "load": load,
        "page_load_time_s": page_load_time_s,
        "time_to_first_byte_s": 0.1,
        "first_contentful_paint_s": 0.3,
        "largest_contentful_paint_s": largest,
        "dom_content_loaded_s": 0.9,
        "dns_s": 0.01,
        "transferred_bytes": 1000,
    }


def test_scores(web: SimpleNamespace) -> None:
    observations = [
        observation("wiki", 1, 1.0, 0.5),
        observation("wiki", 2, 2.0, None),
        observation("search", 1, 0.5, None),
    ]
    scored = web.scores.score(observations, {}, Path())
    values = {(value.metric, *value.labels.values(), value.repeat): value.value for value in scored}
    loads = [values["page_load_time", "wiki", 1], values["page_load_time", "wiki", 2]]
    assert loads == [1.0, 2.0]
    assert values["page_load_time", "search", 0] == 0.5, "one load has no number"
    assert values["page_load_time_mean", 0] == pytest.approx(1.0)
    assert values["largest_contentful_paint", "wiki", 1] == pytest.approx(0.5)
    assert ("largest_contentful_paint", "wiki", 2) not in values
    assert ("largest_contentful_paint", "search", 0) not in values


def test_values_carry_the_labels_of_their_metric(web: SimpleNamespace) -> None:
    metrics = {metric.name: metric for metric in web.scores.METRICS}
    for value in web.scores.score([observation("wiki", 1, 1.0, 0.5)], {}, Path()):
        assert tuple(value.labels) == metrics[value.metric].labels


def test_nothing_observed_gives_no_score(web: SimpleNamespace) -> None:
    assert web.scores.score([], {}, Path()) == []
