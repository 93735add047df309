"""The scenario `firefox`: its parameters and scores."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.scores.plugins import load
from mplab.base.errors import StepError
from mplab.lab.catalog import load_scenario
from tests.unit.scenarios.test_web import PAGE as OBJECTS
from tests.unit.scenarios.test_web import PlaybackUi

PAGE = {
    "event": "page",
    "site": "wiki",
    "page_load_time_s": 2.0,
    "first_contentful_paint_s": 0.5,
    "largest_contentful_paint_s": 0.75,
    "transferred_bytes": 610_000,
    "connections": 3,
}


def scores(*pages: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {
        (value.metric, value.labels.get("site", "")): value.value for value in load("firefox").score(pages, {}, Path())
    }


def test_a_value_for_each_load_and_the_mean_of_all_sites() -> None:
    pages = (PAGE, {**PAGE, "page_load_time_s": 4.0}, {**PAGE, "site": "search", "page_load_time_s": 1.0})
    values = [value for value in load("firefox").score(pages, {}, Path()) if value.metric == "page_load_time"]
    assert [(value.labels["site"], value.repeat, value.value) for value in values] == [
        ("wiki", 1, 2.0),
        ("wiki", 2, 4.0),
        ("search", 0, 1.0),
    ]
    metrics = scores(*pages)
    assert metrics["page_load_time_mean", ""] == 2.0
    assert metrics["page_connections", "search"] == 3


@pytest.mark.parametrize(
    ("field", "metric"),
    [
        ("page_load_time_s", "page_load_time"),
        ("first_contentful_paint_s", "first_contentful_paint"),
        ("largest_contentful_paint_s", "largest_contentful_paint"),
        ("transferred_bytes", "page_bytes"),
        ("connections", "page_connections"),
    ],
)
def test_each_metric_responds(field: str, metric: str) -> None:
    worse = {**PAGE, field: PAGE[field] * 2}  # type: ignore[operator]
    assert scores(worse)[metric, "wiki"] == 2 * scores(PAGE)[metric, "wiki"]


def test_a_paint_that_was_not_seen_gives_no_value() -> None:
    assert ("largest_contentful_paint", "wiki") not in scores({**PAGE, "largest_contentful_paint_s": None})


def visit(make_cell: Callable[..., Any], events: list[dict[str, Any]], *, reused: set[str], **given: str) -> Any:
    """Return the cell after a load of `wiki`; the requests `reused` used connections from before."""
    for event in events:
        if event["method"] == "Network.responseReceived":
            response = event["params"]["response"]
            del response["connectionId"]
            response["connectionReused"] = event["params"]["requestId"] in reused
    scenario, cell = load_scenario("firefox"), make_cell(ui=PlaybackUi(events))
    parameters = scenario.parameters.model_validate({"sites": ["wiki"], "think": "0 s", **given})
    cell.run(scenario, parameters)
    return cell


def test_a_load_tells_its_connections_and_leaves_what_the_browser_said(
    make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    events = make_events(OBJECTS)
    cell = visit(make_cell, events, reused={"2"})
    (page,) = cell.observations
    assert (page["site"], page["page_load_time_s"], page["connections"]) == ("wiki", 0.8125, 2)
    assert json.loads((cell.context.cell_dir / "network" / "wiki-1.json").read_text()) == events


def test_one_address_allows_connections_without_requests(
    make_cell: Callable[..., Any], make_events: Callable[..., Any]
) -> None:
    objects = {url.replace(".lab", ".o2.lab"): size for url, size in OBJECTS.items()}
    (page,) = visit(make_cell, make_events(objects), reused={"2"}, addresses="one").observations
    assert page["connections"] == 2


@pytest.mark.parametrize(
    ("protocol", "reused", "message"),
    [
        ("h2", {"0", "1", "2"}, "firefox: wiki: the page opened no connection: the browser had kept one"),
        ("http/1.1", set(), "firefox: wiki: 3 objects came by http/1.1, h2 was requested"),
    ],
)
def test_a_load_that_does_not_count(
    make_cell: Callable[..., Any],
    make_events: Callable[..., Any],
    tmp_path: Path,
    *,
    protocol: str,
    reused: set[str],
    message: str,
) -> None:
    with pytest.raises(StepError, match=f"^{message}"):
        visit(make_cell, make_events(OBJECTS, protocol=protocol), reused=reused)
    assert (tmp_path / "network" / "wiki-1.json").exists()


def test_twelve_sites_in_firefox() -> None:
    scenario = load_scenario("firefox")
    assert len(scenario.parameters().sites) == 12  # type: ignore[attr-defined]
    assert scenario.browser == "firefox"
    assert scenario.time_limit_s(scenario.parameters()) < 240


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sites: [wiki, wiki]", "listed twice: wiki"),
        ("sites: [wikis]", "wiki"),
        ("think: 3", "a number needs a unit"),
        ("http: h3", "h2"),
    ],
)
def test_wrong_parameters(problems: Callable[[Any, str], list[str]], text: str, words: str) -> None:
    (problem,) = problems(load_scenario("firefox"), text)
    assert words in problem
