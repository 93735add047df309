"""The scenario `requests`: curl's command line, the parser of its reports, its scores."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import StepError
from mplab.base.machine import CommandResult
from mplab.drivers.origin.cache import DEFAULT_SEED
from mplab.drivers.origin.generate import build_site
from mplab.format.sites import SiteVariant, load_sites
from mplab.scenarios.requests import curl
from mplab.scenarios.requests.scenario import SCENARIO, RequestsParameters
from mplab.scenarios.requests.scores import score


def line(number: int, *, of_round: int = 1, **changes: Any) -> str:
    report = {
        "exit_code": 0,
        "status": "206",
        "request_bytes": 500,
        "response_bytes": 2000,
        "connections": 1 if number == 1 and of_round == 1 else 0,
        "connect_s": 0.05,
        "first_byte_s": 0.09,
        "total_s": 0.1,
        "local_port": "040000",
        "url": f"http://{curl.HOST}{curl.PATH}?round={of_round}&request={number}",
    }
    return f"mplab-curl {json.dumps({**report, **changes})}"


IDLE = line(1, url="file:///dev/null#1", status="000", local_port="0", response_bytes=0)
SMALL = {"requests": 2, "rounds": 2, "idle": "1 s", "period": "500 ms"}
LINES = [line(1), line(2), IDLE, line(1, of_round=2), line(2, of_round=2)]


def run(mplab_cell: Callable[..., Any], lines: Sequence[str], *, proxy: str = "", **given: Any) -> Any:
    cell = mplab_cell(reply=lambda _argv: CommandResult(0, "", "\n".join(lines)), app_proxy=proxy)
    cell.run(SCENARIO, RequestsParameters.model_validate({**SMALL, **given}))
    return cell


def test_requests_and_idle_times_are_one_command(mplab_cell: Callable[..., Any]) -> None:
    (argv,) = run(mplab_cell, LINES).context.phone.commands
    assert argv[-3:] == [
        "http://img1.search.lab/i/1.png?round=1&request=[1-2]",
        "file:///dev/null#[1-1]",
        "http://img1.search.lab/i/1.png?round=2&request=[1-2]",
    ]
    assert argv[argv.index("--rate") + 1] == "7200/h"
    assert argv[argv.index("--max-time") + 1] == "2"
    assert argv[argv.index("--noproxy") + 1] == "*"
    assert "Connection: close" not in argv
    assert "Range: bytes=0-1999" in argv


def test_new_connections_and_the_proxy_of_a_phone_without_root(mplab_cell: Callable[..., Any]) -> None:
    lines = [line(1), line(2, connections=1), line(1, of_round=2, connections=1), line(2, of_round=2, connections=1)]
    (argv,) = run(mplab_cell, lines, proxy="127.0.0.1:1080", connections="new").context.phone.commands
    assert "Connection: close" in argv
    assert argv[argv.index("--socks5-hostname") + 1] == "127.0.0.1:1080"


@pytest.mark.parametrize("connections", ["kept", "new"])
def test_the_cookie_fills_the_request(connections: str) -> None:
    settings = {"requests": 20, "rounds": 12, "request": "700 B", "connections": connections}
    plan = RequestsParameters.model_validate(settings).plan()
    first = plan.urls()[0]
    assert first.endswith("?round=01&request=[01-20]")
    headers = [header for header in plan.headers() if not header.endswith(":")]
    url = first.removeprefix(f"http://{curl.HOST}").replace("[01-20]", "07")
    head = [f"GET {url} HTTP/1.1", f"Host: {curl.HOST}", *headers, "", ""]
    assert len("\r\n".join(head)) == 700


def test_the_site_has_the_object(tmp_path: Path) -> None:
    site = next(site for site in load_sites() if site.slug == "search")
    built = build_site(tmp_path, site, DEFAULT_SEED)
    (target,) = [
        item
        for item in built.objects
        if (SiteVariant().host_name(item.host, built.slug), item.path) == (curl.HOST, curl.PATH)
    ]
    assert target.size_bytes >= 40_000


def test_idle_times_and_requests_without_an_answer_are_told_apart(mplab_cell: Callable[..., Any]) -> None:
    lines = [*LINES[:4], line(2, of_round=2, exit_code=28, status="000", response_bytes=0, total_s=2.001)]
    (observation,) = run(mplab_cell, lines).observations
    assert [(item["round"], item["number"], item["exit_code"]) for item in observation["results"]] == [
        *((1, 1, 0), (1, 2, 0)),
        *((2, 1, 0), (2, 2, 28)),
    ]
    assert (observation["idle_s"], observation["deadline_s"]) == (1.0, 0.3)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*LINES[:4], line(2, of_round=2, status="404")], "round 2, request 2: HTTP status 404, 206 is needed"),
        ([*LINES[:4], line(2, of_round=2, response_bytes=7)], "request 2: 7 bytes came, 2000 were requested"),
        ([*LINES[:4], line(2, of_round=2, exit_code=3), "curl: (3) bad URL"], "curl failed (3): (3) bad URL"),
        ([*LINES[:4]], "requests: 3 of 4 have a result"),
        (["sh: curl: not found"], "requests: 0 of 4 have a result: sh: curl: not found"),
        (
            [line(n, of_round=r, exit_code=7) for r in (1, 2) for n in (1, 2)] + ["curl: (7) refused"],
            "requests: no request was answered: (7) refused",
        ),
    ],
)
def test_what_went_wrong_is_reported(mplab_cell: Callable[..., Any], lines: Sequence[str], message: str) -> None:
    with pytest.raises(StepError) as caught:
        run(mplab_cell, lines)
    assert message in str(caught.value)


def test_a_request_without_a_connection_of_its_own_fails(mplab_cell: Callable[..., Any]) -> None:
    with pytest.raises(StepError, match="request 2: it used the connection of another request"):
        run(mplab_cell, LINES, connections="new")


def scores(mplab_cell: Callable[..., Any], lines: Sequence[str]) -> dict[str, float]:
    values = run(mplab_cell, lines).scores("requests")
    return {" ".join([value.metric, *value.labels.values()]): round(value.value, 6) for value in values}


def test_each_metric_responds(mplab_cell: Callable[..., Any]) -> None:
    assert scores(mplab_cell, LINES) == {
        "request_time 50 %": 0.1,
        "request_time 95 %": 0.1,
        "missed_deadlines": 0,
        "first_request_time": 0.1,
        "unanswered": 0,
        "connections_opened": 1,
    }
    bad = [
        *(line(1, total_s=0.2), line(2, exit_code=56, total_s=0.01)),
        *(line(1, of_round=2, connections=1, total_s=0.6), line(2, of_round=2, total_s=0.2)),
    ]
    assert scores(mplab_cell, bad) == {
        "request_time 50 %": 0.4,
        "request_time 95 %": 1.79,
        "missed_deadlines": 50,
        "first_request_time": 0.6,
        "unanswered": 25,
        "connections_opened": 2,
    }


def test_one_round_of_one_request_has_no_first_after_an_idle_time(mplab_cell: Callable[..., Any]) -> None:
    cell = run(mplab_cell, [line(1)], rounds=1, requests=1)
    metrics = {value.metric for value in cell.scores("requests")}
    assert metrics == {"request_time", "missed_deadlines", "unanswered", "connections_opened"}


def test_bytes_of_the_interfaces_are_scored() -> None:
    traffic = {"event": "traffic", "interfaces": {"wlan0": {"bytes_up": 1000, "bytes_down": 2000}}}
    assert [(value.metric, value.value) for value in score([traffic], {}, Path())] == [("wifi_bytes", 3.0)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("requests: 600", "2 rounds of 600 requests: at most 1000 are possible"),
        ("deadline: 3 s", "deadline 3 s: more than the patience of 2 s"),
        ("{idle: 1 s, period: 2 s}", "idle 1 s: less than the period of 2 s"),
        ("request: 100 B", "request 100 B: 250 B to 4 kB are needed"),
        ("response: 1 MB", "response 1 MB: 1 B to 40 kB are needed"),
        ("period: 1 ms", "period 1 ms: from 50 ms to 60 s is needed"),
        ("connections: many", "Allowed: kept, new"),
    ],
)
def test_wrong_parameters(mplab_problems: Callable[[Any, str], list[str]], text: str, words: str) -> None:
    (problem,) = mplab_problems(SCENARIO, text)
    assert words in problem


def test_times_for_the_plan() -> None:
    parameters = RequestsParameters.model_validate({})
    assert SCENARIO.estimate_s(parameters) == 31
    assert SCENARIO.time_limit_s(parameters) == 100
    assert SCENARIO.time_limit_s(RequestsParameters.model_validate({"rounds": 1, "requests": 5})) == 20
