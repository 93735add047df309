"""The key ``rest`` of an experiment: a pause before each attempt at a cell."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError, StepError
from mplab.format.record import json_of
from mplab.run.blocks import make_plan
from tests.fakes.bench import CellBench, RunBench, experiment_text

RESTING = experiment_text(more="rest: 1.5 s\n")


def test_a_cell_rests_before_it_touches_links_and_app(bench: CellBench) -> None:
    report = bench.run(RESTING)
    assert report.outcome == "ok"
    assert bench.steps[:2] == ["rest", "services"]
    assert report.timings_s["rest"] == 1.5
    calls = bench.lab.script.calls
    assert calls.index("clock.sleep") < calls.index("scenario.prepare") < calls.index("shaper.probe")


def test_without_the_key_there_is_no_such_step(bench: CellBench) -> None:
    report = bench.run()
    assert "rest" not in report.timings_s
    assert "clock.sleep" not in bench.lab.script.calls


def test_each_attempt_rests(tmp_path: Path) -> None:
    text = experiment_text(retries=1, more="rest: 1 s\n")
    run = RunBench.planned(tmp_path / "run", text)
    run.lab.script.at("scenario.run", StepError("no button"))
    run.execute()
    assert run.outcomes == ["ok"]
    assert run.lab.script.calls.count("clock.sleep") == 2


def test_it_is_in_manifest_estimate_and_hash(bench: CellBench) -> None:
    resting, plain = bench.experiment(RESTING), bench.experiment(experiment_text())
    assert json_of(resting.record())["rest_s"] == 1.5
    assert resting.cell_timeout_s == plain.cell_timeout_s
    planned, without = make_plan(resting), make_plan(plain)
    assert planned.estimate_s == pytest.approx(without.estimate_s + 1.5)
    assert planned.cells[0].hash != without.cells[0].hash
    assert make_plan(bench.experiment(experiment_text(more="rest: 0 s\n"))) == without


@pytest.mark.parametrize("value", ["3 min", "1", "-1 s"])
def test_a_wrong_rest_is_refused(bench: CellBench, value: str) -> None:
    with pytest.raises(InputError, match=r"experiment\.yaml:\d+: rest: "):
        bench.experiment(experiment_text(more=f"rest: {value}\n"))
