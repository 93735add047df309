"""The duration of a plan, estimated from earlier runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.format.events import EventLog
from mplab.format.experiment import CELL_OVERHEAD_S
from mplab.format.plan import CellSpec
from mplab.format.record import json_of
from mplab.format.runevents import CellFinished, CellRetried, CellStarted, RunStarted, planned_event
from mplab.run.blocks import make_plan
from mplab.run.planning import learn
from mplab.userfiles.experiments.experiment import Experiment
from tests.unit.test_plan import Parameters, experiment

ASKED = experiment(scenarios=2, transports=2, links=2, repetitions=2)
PLAN = make_plan(ASKED)


def earlier(runs: Path, took_s: dict[tuple[str, str, str], float], asked: Experiment = ASKED, number: int = 0) -> Path:
    """Write a run in which some combinations finished in the given times, after a first attempt; return its folder."""
    folder = runs / f"2026010{number}T000000Z-{asked.name}-abcde{number}"
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"experiment": json_of(asked.record())}))
    now = 0.0
    with EventLog(folder / "events.jsonl", clock=lambda: now) as events:
        plan = make_plan(asked)
        events.append(planned_event(plan))
        events.append(RunStarted())
        for cell in plan.cells:
            if (lasted := took_s.get((cell.scenario, cell.transport, cell.link))) is not None:
                events.append(CellStarted(cell=cell.id, attempt=1))
                now += lasted / 2
                events.append(CellRetried(cell=cell.id, attempt=1))
                events.append(CellStarted(cell=cell.id, attempt=2))
                now += lasted / 2
                events.append(CellFinished(cell=cell.id, outcome="ok", duration_s=1.0))
    return folder


def of_scenario(cell: CellSpec) -> float:
    return ASKED.scenario(cell.scenario).estimate_s + CELL_OVERHEAD_S


def test_nothing_is_known(tmp_path: Path) -> None:
    assert learn(PLAN, ASKED, tmp_path / "none") == (PLAN, 0)
    folder = earlier(tmp_path, {("s0", "t0", "l0"): 50.0})
    (folder / "manifest.json").write_text("{")
    assert learn(PLAN, ASKED, tmp_path) == (PLAN, 0)


def test_what_is_known_goes_before_what_scenarios_say(tmp_path: Path) -> None:
    earlier(tmp_path, {("s0", "t0", "l0"): 50.0, ("s1", "t1", "l0"): 7.0, ("s1", "t1", "l1"): 9.0})
    earlier(tmp_path, {("s0", "t0", "l0"): 70.0}, number=1)
    plan, cells = learn(PLAN, ASKED, tmp_path)
    known = {("s0", "t0", "l0"): 60.0, ("s0", "t0", "l1"): 60.0, ("s1", "t1", "l0"): 7.0, ("s1", "t1", "l1"): 9.0}
    expected = sum(known.get((c.scenario, c.transport, c.link), of_scenario(c)) for c in PLAN.cells)
    assert plan.estimate_s == pytest.approx(expected)
    assert cells == 8
    assert plan.cells == PLAN.cells


def test_cells_with_other_parameters_do_not_count(tmp_path: Path) -> None:
    first, second = ASKED.scenarios
    other = replace(ASKED, scenarios=(replace(first, parameters=Parameters(size=2)), second))
    earlier(tmp_path, {("s0", "t0", "l0"): 50.0, ("s1", "t0", "l0"): 5.0}, asked=other)
    plan, cells = learn(PLAN, ASKED, tmp_path)
    assert cells == 2
    expected = sum(5.0 if (c.scenario, c.transport) == ("s1", "t0") else of_scenario(c) for c in PLAN.cells)
    assert plan.estimate_s == pytest.approx(expected)


def test_the_newest_runs_of_that_name_alone(tmp_path: Path) -> None:
    earlier(tmp_path, {("s0", "t0", "l0"): 50.0}, asked=replace(ASKED, name="example-2"))
    assert learn(PLAN, ASKED, tmp_path)[1] == 0
