"""The steps of a cell: their order, and that everything is undone however the cell ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import DeviceError, StepError
from mplab.cell.steps import Step
from tests.fakes.bench import CellBench, experiment_text
from tests.fakes.lab import FakePart
from tests.fakes.scenario import CheckingScenario

STEPS = [
    *("services", "prepare", "shape", "probe", "transport", "prove", "capture", "agent", "scenario"),
    *("stop", "stop captures", "clean up", "evidence"),
]
"""Names of the steps as in events, ``timings_s`` and messages."""


def test_steps_have_their_order(bench: CellBench) -> None:
    report = bench.run()
    assert (report.outcome, report.reasons, report.warnings) == ("ok", [], [])
    assert bench.steps == STEPS


def test_every_step_is_timed(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", lambda: bench.lab.clock.jump(5.0))
    report = bench.run()
    assert list(report.timings_s) == STEPS
    assert report.timings_s == dict.fromkeys(STEPS, 0.0) | {"scenario": 5.0}
    assert report.duration_s == 5.0


def test_parts_do_their_work_in_this_order(bench: CellBench) -> None:
    bench.run()
    expected = [
        *("services.check", "scenario.prepare", "shaper.apply", "shaper.probe", "shaper.apply"),
        *("lab.set_up_transport", "phone.check", "phone.capture", "phone.capture", "proxy.capture", "phone.agent"),
        *("phone.counters", "proxy.counters", "shaper.counters", "scenario.run"),
        *("phone.counters", "proxy.counters", "shaper.counters"),
        *("agent.stop", "capture.stop", "capture.stop", "capture.stop", "scenario.clean_up"),
    ]
    assert [call for call in bench.lab.script.calls if call in expected][: len(expected)] == expected


def test_undo_is_last_and_takes_the_last_change_first(bench: CellBench) -> None:
    bench.run()
    calls = bench.lab.script.calls
    undone = [call for call in calls[calls.index("scenario.clean_up") + 1 :] if call.partition(".")[0] != "captures"]
    assert [call for call in undone if call in ("phone.prefer wlan0", "transport.undone", "shaper.clear")] == [
        "phone.prefer wlan0",
        "transport.undone",
        "shaper.clear",
    ]
    assert bench.lab.clean


def test_the_seed_makes_the_losses_of_a_cell_begin_again_after_the_probe(bench: CellBench) -> None:
    bench.run()
    shaping = bench.lab.script.of("shaper")
    assert shaping[:3] == ["shaper.apply", "shaper.probe", "shaper.apply"]


def test_captures_begin_before_the_agent_and_end_after_it(bench: CellBench) -> None:
    bench.run()
    calls = bench.lab.script.calls
    assert calls.index("proxy.capture") < calls.index("phone.agent")
    assert calls.index("agent.stop") < calls.index("capture.stop")


def test_nothing_is_captured_when_the_experiment_wants_no_captures(bench: CellBench) -> None:
    report = bench.run(experiment_text(more="capture: off\n"))
    assert (report.outcome, report.captures) == ("ok", [])
    assert bench.lab.script.of("phone.capture", "captures.read") == []


def test_a_scenarios_own_check_has_an_agent_for_as_long_as_it_takes(tmp_path: Path) -> None:
    bench = CellBench.in_folder(tmp_path, CheckingScenario)
    report = bench.run()
    assert report.outcome == "ok"
    assert bench.steps == ["services", "check", *STEPS[1:]]
    of_check = [call for call in bench.lab.script.calls if call in ("phone.agent", "scenario.check", "agent.stop")]
    assert of_check[:3] == ["phone.agent", "scenario.check", "agent.stop"]
    assert bench.lab.script.calls.index("agent.stop") < bench.lab.script.calls.index("scenario.prepare")
    assert (bench.directory / "logs" / "check" / "agent.json").exists() or (
        bench.directory / "logs" / "check" / "agent.log"
    ).exists()


def test_a_scenarios_own_check_has_the_time_of_the_scenario(tmp_path: Path) -> None:
    bench = CellBench.in_folder(tmp_path, CheckingScenario)
    bench.run()
    assert bench.lab.limit.asked == [(30.0, "fake: check"), (30.0, "fake")]


def test_steps_that_the_lab_adds_come_at_their_moments(bench: CellBench) -> None:
    script = bench.lab.script
    bench.lab.parts = [FakePart(script, "phone", "app"), FakePart(script, "film", "captures")]
    report = bench.run()
    assert bench.steps == ["phone", *STEPS[:7], "film", *STEPS[7:]]
    order = ("phone.start", "services.check", "proxy.capture", "film.start", "phone.agent", "scenario.run")
    calls = [call for call in script.calls if call in order]
    assert calls[: len(order)] == list(order)
    ends = ("capture.stop", "film.finish", "scenario.clean_up", "phone.finish")
    assert [call for call in script.calls if call in ends][2:] == list(ends)
    assert script.of("phone.judge", "film.judge") == ["phone.judge", "film.judge"]
    assert report.phone["part"] == "film"
    assert report.warnings == ["phone is warm", "film is warm"]


AFTER = {
    "services.check": 0,
    "scenario.prepare": 1,
    "shaper.apply": 1,
    "shaper.probe": 1,
    "lab.set_up_transport": 1,
    "phone.check": 1,
    "phone.capture": 1,
    "proxy.capture": 1,
    "phone.agent": 1,
    "phone.counters": 1,
    "scenario.run": 1,
    "agent.stop": 1,
    "capture.stop": 1,
    "scenario.clean_up": 1,
    "captures.read": 1,
}
"""Call → 1 if the scenario's preparation starts before its end, otherwise 0."""


@pytest.mark.parametrize("call", AFTER)
def test_an_error_at_any_step_fails_the_cell_and_leaves_nothing(bench: CellBench, call: str) -> None:
    bench.lab.script.at(call, DeviceError("part", f"broke at {call}"))
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", [f"part: broke at {call}"])
    assert bench.lab.clean
    assert bool(bench.lab.script.of("scenario.clean_up")) or call == "services.check"


@pytest.mark.parametrize("call", AFTER)
def test_an_interrupt_at_any_step_passes_and_leaves_nothing(bench: CellBench, call: str) -> None:
    bench.lab.script.at(call, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.lab.clean


@pytest.mark.parametrize("call", ["shaper.apply", "phone.agent", "scenario.run"])
def test_an_unexpected_error_passes_and_leaves_nothing(bench: CellBench, call: str) -> None:
    bench.lab.script.at(call, ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        bench.run()
    assert bench.lab.clean


def test_steps_end_where_an_error_is(bench: CellBench) -> None:
    bench.lab.script.at("shaper.probe", DeviceError("probe", "no answer"))
    report = bench.run()
    assert bench.steps == ["services", "prepare", "shape", "probe"]
    assert list(report.timings_s) == bench.steps
    assert bench.lab.script.of("lab.set_up_transport", "scenario.run") == []


def test_what_cannot_be_undone_fails_the_cell_and_stops_no_other_undo(bench: CellBench) -> None:
    bench.lab.script.at("shaper.clear", DeviceError("router", "is gone"))
    bench.lab.script.at("transport.undone", DeviceError("phone", "is gone"))
    report = bench.run()
    assert report.outcome == "failed"
    assert report.reasons == ["not undone: transport: phone: is gone; links: router: is gone"]
    assert not bench.lab.phone.running
    assert not list(bench.lab.scratch.iterdir())


def test_what_cannot_be_undone_does_not_hide_why_the_cell_failed(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", StepError("no button"))
    bench.lab.script.at("shaper.clear", DeviceError("router", "is gone"))
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", ["no button"])


def test_an_interrupt_while_things_are_undone_lets_the_rest_be_undone(bench: CellBench) -> None:
    bench.lab.script.at("transport.undone", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    assert bench.lab.clean


def test_a_lab_is_good_for_the_next_cell_after_a_failed_one(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", StepError("no button"))
    assert [bench.run().outcome for _ in range(2)] == ["failed", "ok"]


def test_files_of_a_failed_cell_are_kept(bench: CellBench) -> None:
    def fail() -> None:
        with bench.lab.origin_log.open("a") as log:
            log.write("of the cell\n")
        raise StepError("no button")

    bench.lab.script.at("scenario.run", fail)
    bench.run()
    assert (bench.directory / "logs" / "access.jsonl").read_text() == "of the cell\n"
    assert (bench.directory / "logs" / "agent.log").is_file()
    observed = [json.loads(line) for line in (bench.directory / "scenario.jsonl").read_text().splitlines()]
    assert [observation["event"] for observation in observed] == ["fake"]


def test_a_scenario_that_takes_too_long_has_failed(bench: CellBench) -> None:
    bench.lab.limit.expires = 1
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", ["fake: not finished within 30 s"])
    assert bench.lab.clean


def test_the_time_limit_is_the_smaller_of_scenario_and_experiment(bench: CellBench) -> None:
    bench.run(experiment_text(more="cell_timeout: 40 s\n"))
    bench.run(experiment_text(), cell_timeout_s=12.0)
    assert [seconds for seconds, _ in bench.lab.limit.asked] == [30.0, 12.0]


def test_a_step_is_finished_also_when_its_evidence_cannot_be_collected() -> None:
    calls = []

    class Broken(Step):
        def collect(self) -> None:
            raise DeviceError("phone", "no log")

        def finish(self) -> None:
            calls.append("finished")

    attempt: Any = None
    with pytest.raises(DeviceError, match="no log"):
        Broken(attempt).end()
    assert calls == ["finished"]
