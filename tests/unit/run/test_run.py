"""Every cell of a plan in order: outcomes, retries, interrupts and events."""

from collections.abc import Callable

import pytest

from mplab.base.errors import DeviceError, InterruptedRunError, LabNotReadyError, MplabError, StepError
from mplab.format.runevents import ContinueAsked, PauseAsked
from mplab.run.control import request
from tests.fakes.bench import RunBench

Planned = Callable[..., RunBench]

NO_BUTTON = StepError("no button")


def test_cells_are_run_in_their_order(planned: Planned) -> None:
    run = planned(transports="sptcp-wifi, sptcp-lte, mptcp", repetitions=2)
    cells = run.execute()
    plan = run.directory.read_manifest().plan
    assert list(cells) == [cell.id for cell in plan.cells]
    assert [event["cell"] for event in run.events("cell_finished")] == list(cells)
    assert run.outcomes == ["ok"] * 6


def test_what_is_told_of_a_run(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.execute()
    cell = ["cell_started", "cell_finished"]
    assert run.names() == ["run_planned", "run_started", "lab_up", *cell, *cell, "run_finished"]
    (started,) = run.events("run_started")
    (up,) = run.events("lab_up")
    (finished,) = run.events("run_finished")
    assert (started["cells"], up["nodes"]) == (2, ["phone", "proxy"])
    assert finished["outcomes"] == {"ok": 2, "invalid": 0, "failed": 0}


def test_the_steps_of_each_cell_are_told(planned: Planned) -> None:
    run = planned()
    (cell,) = run.execute().values()
    assert [event["step"] for event in run.events("cell_step")] == list(cell.timings_s)
    assert {event["cell"] for event in run.events("cell_step")} == {cell.id}


def test_the_lab_is_up_for_the_whole_run_and_down_after_it(planned: Planned) -> None:
    run = planned(repetitions=3)
    run.execute()
    assert run.lab.script.of("lab.up", "lab.down", "scenario.run") == ["lab.up", *["scenario.run"] * 3, "lab.down"]


def test_a_finished_run_needs_no_lab(planned: Planned) -> None:
    run = planned()
    run.execute()
    run.lab.script.calls.clear()
    run.execute()
    assert run.lab.script.calls == []
    assert run.names()[-2:] == ["run_started", "run_finished"]


RETRIES: dict[str, tuple[int, list[Exception | None], list[str]]] = {
    "none": (0, [NO_BUTTON], ["failed"]),
    "one helps": (1, [NO_BUTTON], ["failed", "ok"]),
    "one does not": (1, [NO_BUTTON, NO_BUTTON], ["failed", "failed"]),
    "not all are needed": (3, [NO_BUTTON, NO_BUTTON], ["failed", "failed", "ok"]),
    "not needed": (2, [], ["ok"]),
}


@pytest.mark.parametrize(("retries", "errors", "outcomes"), RETRIES.values(), ids=RETRIES)
def test_a_cell_is_tried_again(planned: Planned, retries: int, errors: list[Exception], outcomes: list[str]) -> None:
    run = planned(retries=retries)
    run.lab.script.at("scenario.run", *errors)
    (cell,) = run.execute().values()
    assert cell.outcome == outcomes[-1]
    assert [attempt.outcome for attempt in cell.attempts] == outcomes
    assert [attempt.reason for attempt in cell.attempts] == [
        "" if outcome == "ok" else "no button" for outcome in outcomes
    ]
    assert cell.attempt == len(outcomes)
    retried = run.events("cell_retried")
    assert [(event["attempt"], event["reason"]) for event in retried] == [
        (number, "no button") for number in range(1, len(outcomes))
    ]


def test_an_invalid_attempt_is_made_again_too(planned: Planned) -> None:
    run = planned(retries=1)
    run.lab.shaper.rates += [0.5] * 3
    (cell,) = run.execute().values()
    assert [attempt.outcome for attempt in cell.attempts] == ["invalid", "ok"]


def test_each_attempt_keeps_its_files(planned: Planned) -> None:
    run = planned(retries=2)
    run.lab.script.at("scenario.run", NO_BUTTON, NO_BUTTON)
    (cell,) = run.execute()
    folder = run.directory.cell_dir(cell)
    assert sorted(path.name for path in (folder / "attempts").iterdir()) == ["1", "2"]
    assert all((path / "scenario.jsonl").is_file() for path in (folder, folder / "attempts" / "1"))


def test_a_failed_cell_does_not_end_the_run(planned: Planned) -> None:
    run = planned(repetitions=3)
    run.lab.script.at("scenario.run", None, NO_BUTTON)
    run.execute()
    assert run.outcomes == ["ok", "failed", "ok"]


def test_the_phone_is_recovered_after_an_attempt_that_failed(planned: Planned) -> None:
    run = planned(retries=1)
    run.lab.recovered = "reboot"
    run.lab.script.at("scenario.run", NO_BUTTON)
    run.execute()
    (event,) = run.events("phone_recovered")
    assert (event["attempt"], event["by"]) == (1, "reboot")
    assert run.lab.reasons == ["no button"]


def test_a_phone_that_cannot_be_recovered_ends_the_run(planned: Planned) -> None:
    run = planned(retries=1, repetitions=2)
    run.lab.script.at("scenario.run", NO_BUTTON)
    run.lab.script.at("lab.recover", LabNotReadyError("phone-1: in quarantine"))
    assert isinstance(run.fails(), LabNotReadyError)
    assert (run.outcomes, run.names()[-1]) == ([], "run_interrupted")
    assert run.lab.script.calls[-1] == "lab.down"


INTERRUPTED = [
    "lab.up",
    "scenario.prepare",
    "shaper.probe",
    "phone.agent",
    "scenario.run",
    "capture.stop",
    "lab.revive",
]


@pytest.mark.parametrize("call", INTERRUPTED)
def test_an_interrupt_ends_the_run_cleanly(planned: Planned, call: str) -> None:
    run = planned(repetitions=3)
    run.lab.script.at(call, *([None] if call.startswith("scenario") else []), KeyboardInterrupt())
    error = run.fails()
    assert isinstance(error, InterruptedRunError)
    assert run.names()[-1] == "run_interrupted"
    assert run.events("run_finished") == []
    assert run.outcomes == (["ok"] if call.startswith("scenario") else [])
    assert run.lab.clean
    assert run.lab.script.calls[-1] == "lab.down" or call == "lab.up"


@pytest.mark.parametrize("call", INTERRUPTED)
def test_an_interrupted_run_goes_on(planned: Planned, call: str) -> None:
    run = planned(repetitions=3)
    run.lab.script.at(call, KeyboardInterrupt())
    run.fails()
    run.execute()
    assert run.outcomes == ["ok"] * 3
    assert run.names()[-1] == "run_finished"


def test_an_interrupted_attempt_is_kept_and_no_attempt_of_the_record(planned: Planned) -> None:
    run = planned()
    run.lab.script.at("scenario.run", KeyboardInterrupt())
    run.fails()
    (cell,) = run.execute().values()
    assert (cell.attempt, [attempt.attempt for attempt in cell.attempts]) == (2, [2])
    assert (run.directory.cell_dir(cell.id) / "attempts" / "1" / "scenario.jsonl").is_file()


def test_a_lab_that_does_not_come_up_ends_the_run(planned: Planned) -> None:
    run = planned()
    run.lab.script.at("lab.up", LabNotReadyError("no namespaces"))
    assert str(run.fails()) == "no namespaces"
    (event,) = run.events("run_interrupted")
    assert event["reason"] == "no namespaces"


def test_a_full_disk_is_one_error(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", OSError(28, "No space left on device"))
    error = run.fails()
    assert type(error) is MplabError
    assert str(error).startswith("disk full: ")
    assert run.lab.clean


def test_a_part_that_breaks_before_the_cells_makes_no_cell(planned: Planned) -> None:
    run = planned()
    run.lab.script.at("lab.up", DeviceError("router", "no answer"))
    assert str(run.fails()) == "router: no answer"
    assert run.cells == {}


def test_a_run_that_is_told_to_pause_waits_between_two_cells(planned: Planned) -> None:
    run = planned(repetitions=2)
    events = run.directory.events_file
    run.lab.script.at("scenario.run", lambda: request(events, PauseAsked()))
    run.lab.script.at("clock.sleep", None, lambda: request(events, ContinueAsked()))
    run.execute()
    assert run.outcomes == ["ok", "ok"]
    pause_events = ["run_paused", "continue_asked", "run_continued"]
    names = run.names()
    assert names[names.index("cell_finished") :][:4] == ["cell_finished", *pause_events]
    assert run.lab.script.of("clock.sleep") == ["clock.sleep"] * 2
