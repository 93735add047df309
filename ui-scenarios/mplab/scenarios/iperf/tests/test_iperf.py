"""The scenario `iperf`: its parameters, the parser of iperf3's output, its scores."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from mplab.analysis.scores.plugins import load
from mplab.base.errors import StepError
from mplab.base.machine import CommandResult
from mplab.lab.catalog import load_scenario


def result(*, received: float = 5e6, retransmits: int | None = 3) -> dict[str, Any]:
    sent: dict[str, Any] = {"bytes": 1_300_000, "seconds": 2.0, "bits_per_second": 5.2e6}
    if retransmits is not None:
        sent["retransmits"] = retransmits
    return {
        "intervals": [{"sum": {"bits_per_second": 4.8e6}}, {"sum": {"bits_per_second": 5.2e6}}],
        "end": {
            "sum_sent": sent,
            "sum_received": {"bytes": 1_250_000, "seconds": 2.0, "bits_per_second": received},
        },
    }


def observe(mplab_cell: Callable[..., Any], answer: CommandResult, **given: Any) -> tuple[Any, list[list[str]]]:
    """Run the scenario on a phone that answers each command with `answer`; return the cell and the commands."""
    scenario = load_scenario("iperf")
    cell = mplab_cell(reply=lambda _argv: answer)
    facts: Mapping[str, str] = {"host": "iperf.lab", "port": "5201"}
    object.__setattr__(cell.context, "service", lambda _name: facts)
    cell.run(scenario, scenario.parameters.model_validate({"pause": "0 s", **given}))
    return cell, cell.context.phone.commands


def test_a_test_for_each_direction(mplab_cell: Callable[..., Any]) -> None:
    answer = CommandResult(0, json.dumps(result()), "")
    cell, commands = observe(mplab_cell, answer, duration="2 s", parallel=4)
    assert [item["direction"] for item in cell.observations] == ["up", "down"]
    assert cell.observations[0]["per_second_bps"] == [4_800_000, 5_200_000]
    assert ["--reverse" in argv for argv in commands] == [False, True]
    assert all(argv[argv.index("--parallel") + 1] == "4" for argv in commands)
    assert all(argv[argv.index("--time") + 1] == "2" for argv in commands)
    assert json.loads((cell.context.cell_dir / "iperf-down.json").read_text()) == result()


def test_a_busy_server_is_asked_again(mplab_cell: Callable[..., Any]) -> None:
    busy = CommandResult(1, '{"error": "the server is busy running a test. try again later"}', "")
    answers = iter([busy, busy])
    scenario = load_scenario("iperf")
    cell = mplab_cell(reply=lambda _argv: next(answers, CommandResult(0, json.dumps(result()), "")))
    facts: Mapping[str, str] = {"host": "iperf.lab", "port": "5201"}
    object.__setattr__(cell.context, "service", lambda _name: facts)
    cell.run(scenario, scenario.parameters.model_validate({"directions": ("down",)}))
    assert len(cell.context.phone.commands) == 3
    assert [item["received_bps"] for item in cell.observations] == [5e6]


@pytest.mark.parametrize(
    ("stdout", "stderr", "message"),
    [
        ("", "iperf3: error - unable to connect\n", "iperf: up: no result: iperf3: error - unable to connect"),
        ("", "", "iperf: up: no result: nothing was printed"),
        ('{"error": "unable to send cookie"}', "", "iperf: up: unable to send cookie"),
        ('{"end": {"sum_sent": {}}}', "", "iperf: up: the result has no 'sum_received'"),
    ],
)
def test_what_went_wrong_is_said(mplab_cell: Callable[..., Any], stdout: str, stderr: str, message: str) -> None:
    with pytest.raises(StepError) as caught:
        observe(mplab_cell, CommandResult(1, stdout, stderr))
    assert str(caught.value) == message


def scores(**changes: Any) -> dict[str, float]:
    end = result(**changes)["end"]
    observation = {
        "event": "iperf",
        "direction": "up",
        "received_bps": end["sum_received"]["bits_per_second"],
        "retransmits": end["sum_sent"].get("retransmits"),
    }
    return {value.metric: value.value for value in load("iperf").score([observation], {}, Path())}


def test_each_metric_responds() -> None:
    good, bad = scores(), scores(received=1e6)
    assert good == {"goodput": 5.0}
    assert bad["goodput"] < good["goodput"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("directions: [up, up]", "a direction is listed twice"),
        ("directions: [sideways]", "sideways"),
        ("duration: 1500 ms", "duration 1.5 s: whole seconds are needed"),
        ("duration: 51 s", "50"),
        ("parallel: 0", "1"),
        ("seconds: 3 s", "unknown key 'seconds'"),
    ],
)
def test_wrong_parameters(mplab_problems: Callable[[Any, str], list[str]], text: str, words: str) -> None:
    (problem,) = mplab_problems(load_scenario("iperf"), text)
    assert words in problem


def test_the_time_limit_is_that_of_all_tests() -> None:
    scenario = load_scenario("iperf")
    assert scenario.time_limit_s(scenario.parameters.model_validate({"duration": "1 s", "directions": ("up",)})) == 27
    assert scenario.time_limit_s(scenario.parameters.model_validate({"duration": "50 s"})) == 120
