"""The web scenario on a browser that plays back events."""

import copy
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.base.programs import FIREFOX
from mplab.format.sites import load_sites
from mplab.lab.catalog import load_android_scenario, programs_of
from mplab.scenarios.base.pages import SLUGS, loaded, stored

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
    """A browser that reports the same events and timings for every page, on new connections unless `kept`."""

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]],
        listed: Any = LISTED,
        error: Exception | None = None,
        kept: bool = False,
    ) -> None:
        self._events, self._listed, self._error, self._kept = events, listed, error, kept
        self.opened: list[str] = []

    def open(self, target: str, *, timeout_s: float = 60.0) -> None:
        self.opened.append(target)
        if self._error is not None and target.startswith("https"):
            raise self._error

    def network_events(self) -> Sequence[Mapping[str, Any]]:
        if not self.opened[-1].startswith("http"):
            return []
        events = copy.deepcopy(self._events)
        for event in events:
            if not self._kept and "connectionId" in event["params"].get("response", {}):
                event["params"]["response"]["connectionId"] += 100 * len(self.opened)
        return events

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
def _no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "har_from_events", lambda events, **_: {"log": {"entries": len(events)}})


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
        "connections": 1,
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


def test_a_connection_of_an_earlier_load_in_the_same_browser_fails_the_cell(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    events = make_events(PAGE, connections={"https://img1.wiki.lab/i/7.png": 9})
    cell = make_cell(ui=PlaybackUi(events, kept=True))
    visit(web, cell, parameters(web, loads=3))
    assert [page["connections"] for page in cell.observations] == [2, 2, 2], "each round has a new browser"
    with pytest.raises(StepError, match=r"2 of 2 connections are of an earlier load"):
        visit(web, make_cell(ui=PlaybackUi(events, kept=True)), parameters(web, sites=["wiki", "search"]))


def test_http1_sites_have_other_names(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    events = make_events({url.replace(".lab", ".h1.lab"): size for url, size in PAGE.items()}, protocol="http/1.1")
    ui = PlaybackUi(events)
    cell = make_cell(ui=ui)
    visit(web, cell, parameters(web, http="h1"))
    assert ui.opened[-1] == "https://www.wiki.h1.lab/"
    assert cell.observations[0]["protocol"] == "http/1.1"


def served(suffix: str, scheme: str = "https") -> dict[str, int]:
    """Return the objects of `PAGE` under the names of another variant."""
    return {url.replace("https", scheme).replace(".lab", suffix): size for url, size in PAGE.items()}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({"addresses": "one"}, "https://www.wiki.o2.lab/"),
        ({"origin_rtt": "none"}, "https://www.wiki.n2.lab/"),
        ({"addresses": "one", "origin_rtt": "none"}, "https://www.wiki.b2.lab/"),
        ({"http": "h1", "tls": False}, "http://www.wiki.h1.lab/"),
        ({"http": "h1", "addresses": "one", "origin_rtt": "none", "tls": False}, "http://www.wiki.b1.lab/"),
    ],
)
def test_the_condition_chooses_names_and_scheme(
    web: SimpleNamespace,
    make_cell: Callable[..., Any],
    make_events: Callable[..., Any],
    given: dict[str, Any],
    url: str,
) -> None:
    scheme, suffix = url.partition(":")[0], url.removesuffix("/").partition("wiki")[2]
    ui = PlaybackUi(make_events(served(suffix, scheme), protocol="http/1.1" if "http" in given else "h2"))
    cell = make_cell(ui=ui)
    visit(web, cell, parameters(web, **given))
    assert ui.opened[-1] == cell.observations[0]["url"] == url


def test_a_clear_page_that_was_encrypted(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    cell = make_cell(ui=PlaybackUi(make_events(served(".h1.lab"), protocol="http/1.1")))
    with pytest.raises(
        StepError, match=r"web: wiki: 3 objects did not come by http: www:/, img1:/i/7\.png, www:/j/3\.js"
    ):
        visit(web, cell, parameters(web, http="h1", tls=False))


def test_one_address_needs_one_connection(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    events = make_events(served(".o2.lab"), connections={"https://img1.wiki.o2.lab/i/7.png": 9})
    with pytest.raises(StepError, match=r"web: wiki: the page used 2 connections, one was requested"):
        visit(web, make_cell(ui=PlaybackUi(events)), parameters(web, addresses="one"))


@pytest.mark.parametrize("given", [{}, {"addresses": "one", "http": "h1"}])
def test_connections_are_counted(
    web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any], given: dict[str, Any]
) -> None:
    suffix, protocol = (".o1.lab", "http/1.1") if given else (".lab", "h2")
    events = make_events(served(suffix), protocol=protocol, connections={f"https://img1.wiki{suffix}/i/7.png": 9})
    cell = make_cell(ui=PlaybackUi(events))
    visit(web, cell, parameters(web, **given))
    assert cell.observations[0]["connections"] == 2


def test_a_second_browser(web: SimpleNamespace, make_cell: Callable[..., Any], make_events: Callable[..., Any]) -> None:
    scenario = web.scenario.SCENARIO
    given, usual = parameters(web, browser="firefox", loads=2), parameters(web, loads=2)
    cell = make_cell(ui=PlaybackUi(make_events(PAGE)))
    visit(web, cell, given)
    assert (scenario.browser_of(given), scenario.browser_of(usual)) == ("firefox", "chromium")
    assert FIREFOX in programs_of(scenario, given)
    assert FIREFOX not in programs_of(scenario, usual)
    assert scenario.estimate_s(given) > scenario.estimate_s(usual)
    assert sorted(path.name for path in (cell.context.cell_dir / "network").iterdir()) == ["wiki-1.json", "wiki-2.json"]


def test_on_android_each_browser_is_an_app_of_its_own_scenario(problems: Callable[[Any, str], list[str]]) -> None:
    (problem,) = problems(load_android_scenario("web"), "browser: firefox")
    assert "found 'firefox'. Allowed: chromium" in problem


def test_manifests_have_conditions_that_are_not_the_default(web: SimpleNamespace) -> None:
    recorded = parameters(web, http="h1", tls=False, browser="firefox").model_dump(mode="json")
    assert recorded == {
        "sites": ["wiki"],
        "http": "h1",
        "tls": False,
        "loads": 1,
        "settle": "0 s",
        "browser": "firefox",
    }
    assert list(parameters(web).model_dump(mode="json")) == ["sites", "http", "loads", "settle"]


def test_without_round_trip_time_pages_are_estimated_faster(web: SimpleNamespace) -> None:
    near, usual = parameters(web, origin_rtt="none"), parameters(web)
    assert web.scenario.SCENARIO.estimate_s(near) < web.scenario.SCENARIO.estimate_s(usual)


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
        connections=1,
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
        ("tls: false", "tls: false needs 'http: h1': browsers speak HTTP/2 only over TLS"),
        ("addresses: two", "Allowed: several, one"),
        ("origin_rtt: 0 ms", "Allowed: table, none"),
        ("browser: safari", "Allowed: chromium, firefox"),
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
        "connections": 3,
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
    assert values["page_connections", "wiki", 1] == 3
    assert ("largest_contentful_paint", "wiki", 2) not in values
    assert ("largest_contentful_paint", "search", 0) not in values


def test_older_runs_did_not_count_connections(web: SimpleNamespace) -> None:
    older = {name: value for name, value in observation("wiki", 1, 1.0, None).items() if name != "connections"}
    assert "page_connections" not in {value.metric for value in web.scores.score([older], {}, Path())}


def test_values_carry_the_labels_of_their_metric(web: SimpleNamespace) -> None:
    metrics = {metric.name: metric for metric in web.scores.METRICS}
    for value in web.scores.score([observation("wiki", 1, 1.0, 0.5)], {}, Path()):
        assert tuple(value.labels) == metrics[value.metric].labels


def test_nothing_observed_gives_no_score(web: SimpleNamespace) -> None:
    assert web.scores.score([], {}, Path()) == []
