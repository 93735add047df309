"""Hooks around cells: when they are asked for, what they are told, what their failure costs."""

from collections.abc import Callable

import pytest

from mplab.base.errors import InterruptedRunError, MplabError, StepError
from tests.fakes.bench import RunBench

Planned = Callable[..., RunBench]

HOOKS = "hooks: {before_cell: [power on], after_cell: [power off]}\n"


def told(run: RunBench) -> list[tuple[str, str]]:
    return [(asked["name"], asked["outcome"]) for asked in run.outside.asked]


def test_they_are_around_each_attempt(planned: Planned) -> None:
    run = planned(more=HOOKS, retries=1)
    run.lab.script.at("scenario.run", StepError("no button"))
    (cell,) = run.execute().values()
    assert told(run) == [("before_cell", ""), ("after_cell", "failed"), ("before_cell", ""), ("after_cell", "ok")]
    assert [asked["attempt"] for asked in run.outside.asked] == [1, 1, 2, 2]
    assert {asked["cell"] for asked in run.outside.asked} == {cell.id}


def test_they_are_steps_of_the_cell(planned: Planned) -> None:
    run = planned(more=HOOKS)
    (cell,) = run.execute().values()
    steps = [event["step"] for event in run.events("cell_step")]
    assert (steps[0], steps[-1]) == ("before_cell", "after_cell")
    assert {"before_cell", "after_cell"} < set(cell.timings_s)


def test_without_hooks_nobody_is_asked(planned: Planned) -> None:
    run = planned()
    run.execute()
    assert run.outside.asked == []


def test_the_outcome_of_an_invalid_cell_is_told(planned: Planned) -> None:
    run = planned(more=HOOKS)
    run.lab.shaper.rates += [0.5] * 3
    run.execute()
    assert told(run)[-1] == ("after_cell", "invalid")


def test_one_that_fails_before_a_cell_fails_the_attempt_and_nothing_is_run(planned: Planned) -> None:
    run = planned(more=HOOKS, retries=1)
    run.outside.answers["before_cell"] = [{"problem": "hook before_cell: 'power on': exit code 1"}]
    (cell,) = run.execute().values()
    assert [attempt.outcome for attempt in cell.attempts] == ["failed", "ok"]
    assert cell.attempts[0].reason == "hook before_cell: 'power on': exit code 1"
    assert run.lab.script.of("scenario.run") == ["scenario.run"]
    assert told(run)[1] == ("after_cell", "failed")


def test_one_that_fails_after_a_cell_is_a_warning(planned: Planned) -> None:
    run = planned(more=HOOKS)
    run.outside.answers["after_cell"] = [{"problem": "hook after_cell: 'power off': exit code 1"}]
    (cell,) = run.execute().values()
    assert (cell.outcome, cell.warnings) == ("ok", ("hook after_cell: 'power off': exit code 1",))


def test_what_is_after_a_cell_is_run_after_an_interrupt_too(planned: Planned) -> None:
    run = planned(more=HOOKS)
    run.lab.script.at("scenario.run", KeyboardInterrupt())
    assert isinstance(run.fails(), InterruptedRunError)
    assert told(run) == [("before_cell", ""), ("after_cell", "interrupted")]


def test_what_is_after_a_cell_is_run_when_the_one_before_it_was_interrupted(planned: Planned) -> None:
    run = planned(more=HOOKS)
    run.outside.answers["before_cell"] = [KeyboardInterrupt()]
    run.fails()
    assert told(run) == [("before_cell", ""), ("after_cell", "interrupted")]
    assert run.lab.script.of("scenario.run") == []


@pytest.mark.parametrize("name", ["before_cell", "after_cell"])
def test_a_process_outside_that_has_gone_ends_the_run(planned: Planned, name: str) -> None:
    run = planned(more=HOOKS, repetitions=2)
    run.outside.answers[name] = [MplabError("the process outside of the lab has gone")]
    assert str(run.fails()) == "the process outside of the lab has gone"
    assert (run.cells, run.names()[-1]) == ({}, "run_interrupted")
