"""The scenario udp-jitter on a phone that answers from a list."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import CheckError, StepError
from mplab.base.machine import CommandResult
from mplab.drivers.transport.redirect import nft_rules
from mplab.format.sites import ECHO_ADDRESS, ECHO_HOST, ECHO_PORT


def distribution(**changes: float) -> dict[str, float]:
    values = {
        "min": 0,
        "mean": 2,
        "stdev": 1.5,
        "p5": 0.5,
        "p25": 1,
        "median": 2,
        "p75": 3,
        "p95": 4,
        "p99": 5,
        "max": 6,
    }
    return values | changes


def direction(**changes: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "sent": 100,
        "arrived": 99,
        "lost": 1,
        "lost_percent": 1.0,
        "duplicates": 0,
        "reordered": 33,
    }
    fields |= {"reordered_percent": 33.333, "jitter_ms": 1.25, "delay_variation_ms": distribution()}
    fields |= {"least_delay_ms": 10.0, "reordering_delay_ms": distribution(mean=0.7, p95=3.5)}
    return fields | changes


def result(**changes: Any) -> str:
    fields: dict[str, Any] = {
        "ok": True,
        "sent": 100,
        "late_ms": distribution(p95=0.3),
        "certain": True,
        "up": direction(),
    }
    fields |= {"down": direction(jitter_ms=2.5), "rtt_ms": distribution(median=24), "longest_gap_ms": 21.5}
    return json.dumps(fields | changes)


def reply(jitter: str, stderr: str = "", lookup: str = "10.65.0.7       STREAM echo.lab\n") -> Any:
    def answer(argv: Sequence[str]) -> CommandResult:
        if "lookup" in argv:
            return CommandResult(0 if lookup else 2, lookup, "")
        return CommandResult(0, jitter, stderr)

    return answer


@pytest.mark.parametrize(
    ("socks", "carried_by", "behind"),
    [("", "default route", []), ("127.0.0.1:1080", "session", ["--socks", "127.0.0.1:1080"])],
)
def test_datagrams_go_by_the_agent_where_it_takes_them(
    udp_jitter: SimpleNamespace, make_cell: Callable[..., Any], socks: str, carried_by: str, behind: list[str]
) -> None:
    scenario = udp_jitter.scenario.SCENARIO
    cell = make_cell(reply=reply(result()), socks=socks)
    cell.run(scenario, scenario.parameters.model_validate({"period": "20 ms", "duration": "5 s"}))
    assert cell.context.phone.commands[1] == [
        *("/bin/mpflex", "udp-jitter", "--json", "--target", "10.65.0.7:7007"),
        *("--size", "100", "--period", "20000us", "--seconds", "5", *behind),
    ]
    (observed,) = cell.observations
    assert (observed["event"], observed["carried_by"], observed["sent"]) == ("datagrams", carried_by, 100)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (reply(json.dumps({"ok": False, "error": "no probe was answered"})), "udp-jitter: no probe was answered"),
        (reply("", "mpflex: not found"), "udp-jitter: no result: mpflex: not found"),
        (reply(result(), lookup=""), "udp-jitter: echo.lab has no address on the phone: no answer"),
        (
            reply(result(late_ms=distribution(p95=11.5))),
            "too busy: one datagram of 20 left 11.5 ms late or later, one is due every 10 ms",
        ),
    ],
)
def test_what_is_no_measurement_is_no_number(
    udp_jitter: SimpleNamespace, make_cell: Callable[..., Any], answer: Any, message: str
) -> None:
    scenario = udp_jitter.scenario.SCENARIO
    cell = make_cell(reply=answer)
    error = CheckError if message.startswith("too busy") else StepError
    with pytest.raises(error, match=message):
        cell.run(scenario, scenario.parameters())
    assert cell.observations == []


def test_scores(udp_jitter: SimpleNamespace) -> None:
    observations = [
        {"t": 0, "event": "datagrams", **json.loads(result())},
        {
            "t": 1,
            "event": "traffic",
            "interfaces": {
                "wlan0": {"bytes_up": 9000, "bytes_down": 6000, "packets_up": 90, "packets_down": 60},
                "rmnet0": {"bytes_up": 0, "bytes_down": 500, "packets_up": 0, "packets_down": 5},
            },
        },
        {"t": 2, "event": "something else"},
    ]
    values = {
        (value.metric, *value.labels.values()): value.value
        for value in udp_jitter.scores.score(observations, {}, Path())
    }
    assert len(values) == 2 * (7 + 4) + 4 + 1 + 2
    assert values["jitter", "up"] == 1.25
    assert values["jitter", "down"] == 2.5
    assert values["one_way_delay", "up", "95 %"] == 14.0
    assert values["round_trip", "50 %"] == 24
    assert values["reordering_delay", "down"] == 0.7
    assert values["reordering_delay_95", "down"] == 3.5
    assert values["lost", "up"] == 1.0
    assert (values["wifi_bytes",], values["cellular_bytes",]) == (15.0, 0.5)


def test_values_carry_the_labels_of_their_metric(udp_jitter: SimpleNamespace) -> None:
    metrics = {metric.name: metric for metric in udp_jitter.scores.METRICS}
    observation = {"event": "datagrams", **json.loads(result())}
    for value in udp_jitter.scores.score([observation], {}, Path()):
        assert tuple(value.labels) == metrics[value.metric].labels


def test_scenario_and_lab_agree(udp_jitter: SimpleNamespace) -> None:
    assert (udp_jitter.scenario.HOST, udp_jitter.scenario.PORT) == (ECHO_HOST, ECHO_PORT)
    assert f"ip daddr {ECHO_ADDRESS} udp dport {ECHO_PORT} accept" in nft_rules("10.64.3.2")


def test_default_parameters_fit_into_the_default_cell_timeout(udp_jitter: SimpleNamespace) -> None:
    scenario = udp_jitter.scenario.SCENARIO
    parameters = scenario.parameters()
    assert (parameters.size, parameters.period, parameters.duration) == (100, 0.01, 10.0)
    assert scenario.estimate_s(parameters) < scenario.time_limit_s(parameters) <= 120


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size: 20 B", "size 20 B: a datagram has 56 B to 1.2 kB"),
        ("size: 9 kB", "size 9 kB: a datagram has 56 B to 1.2 kB"),
        ("period: 10", "a number needs a unit: ms, s"),
        ("period: 0 ms", "period 0 ms: from 1 ms to 10 s is needed"),
        ("{period: 2 s, duration: 1 s}", "a datagram every 2 s for 1 s: 1 to 1048576 are needed"),
        ("rate: 10 kbit/s", "unknown key 'rate'"),
    ],
)
def test_wrong_parameters(
    udp_jitter: SimpleNamespace, problems: Callable[[Any, str], list[str]], text: str, message: str
) -> None:
    assert message in "\n".join(problems(udp_jitter.scenario.SCENARIO, text))
