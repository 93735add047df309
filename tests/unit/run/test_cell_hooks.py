"""Hooks around cells: when they run, their environment, and the effect of their failure."""

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mplab.base.errors import InterruptedRunError, MplabError, StepError
from mplab.run.hostrpc import Answer
from mplab.run.hostside.hooks import HookRunner
from tests.fakes.bench import FakeOutside, RunBench, catalog_with

Planned = Callable[..., RunBench]

HOOKS = "hooks: {before_cell: [power on], after_cell: [power off]}\n"


def told(run: RunBench) -> list[tuple[str, str]]:
    return [(call["name"], call["outcome"]) for call in run.outside.asked]


def test_they_are_around_each_attempt(planned: Planned) -> None:
    run = planned(more=HOOKS, retries=1)
    run.lab.script.at("scenario.run", StepError("no button"))
    (cell,) = run.execute().values()
    assert told(run) == [("before_cell", ""), ("after_cell", "failed"), ("before_cell", ""), ("after_cell", "ok")]
    assert [call["attempt"] for call in run.outside.asked] == [1, 1, 2, 2]
    assert {call["cell"] for call in run.outside.asked} == {cell.id}


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


class Host(FakeOutside):
    """The process outside, with the real commands of hooks."""

    def __init__(self, run: RunBench) -> None:
        super().__init__()
        experiment = run.directory.load_experiment(catalog_with(run.scenario))
        self._runner = HookRunner(experiment.hooks, run.directory)

    def ask(self, question: str, **about: Any) -> Answer:
        super().ask(question, **about)
        return self._runner.answer(about)


ONCE = "import os; raise SystemExit(os.environ['MPLAB_ATTEMPT'] == '1')"
"""A command that fails at the first attempt."""
SAYS = "import os; print(os.environ['MPLAB_HOOK'], os.environ['MPLAB_OUTCOME'])"


def test_commands_of_the_host_are_run_and_their_words_are_kept_with_the_attempt(planned: Planned) -> None:
    python = [sys.executable, "-c"]
    hooks = {"before_cell": [[*python, ONCE]], "after_cell": [[*python, SAYS]]}
    run = planned(more=f"hooks: {json.dumps(hooks)}\n", retries=1)
    run.outside = Host(run)
    (cell,) = run.execute().values()
    assert [attempt.outcome for attempt in cell.attempts] == ["failed", "ok"]
    reason = cell.attempts[0].reason
    assert reason.startswith("hook before_cell: ")
    assert reason.endswith(": exit code 1")
    folder = run.directory.cell_dir(cell.id)
    for attempt_folder, output in ((folder / "attempts" / "1", "after_cell failed"), (folder, "after_cell ok")):
        lines = (attempt_folder / "logs" / "hooks.log").read_text().splitlines()
        assert [line for line in lines if not line.startswith("#")] == [output]
