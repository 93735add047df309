"""A run of a few cells of a plan: they are the same cells, and the run can be resumed."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import InputError
from mplab.lab.catalog import catalog
from mplab.run.hostside import ready
from mplab.run.hostside.beginning import begin
from mplab.run.planning import PlannedRun, load, only_cells, plan_of
from mplab.run.reproducing import plan_again
from mplab.run.resuming import check_unchanged
from mplab.run.run_directory import RunDirectory

TEXT = """mplab: 1
name: few
title: Few cells
scenarios: [download]
transports: [sptcp-wifi, sptcp-lte]
links: [baseline]
repetitions: 3
"""


@pytest.fixture
def planned(tmp_path: Path) -> PlannedRun:
    path = tmp_path / "few.yaml"
    path.write_text(TEXT)
    experiment = load(path)
    return PlannedRun(experiment, plan_of(experiment), tmp_path / "runs")


def test_cells_are_chosen_by_id_and_number_and_stay_the_same(planned: PlannedRun) -> None:
    second, fourth = planned.cells[1], planned.cells[3]
    few = only_cells(planned, [fourth.id, "2", second.id])
    assert few.cells == (second, fourth)
    assert few.estimate_s == pytest.approx(planned.estimate_s / 3)
    assert few.plan.chosen
    assert not only_cells(planned, [cell.id for cell in planned.cells]).plan.chosen


@pytest.mark.parametrize("name", ["0", "7", "0001-download", ""])
def test_a_cell_that_the_plan_lacks_is_refused(planned: PlannedRun, name: str) -> None:
    with pytest.raises(InputError, match=rf"few\.yaml: no cell of the plan is called '{name}'"):
        only_cells(planned, ["1", name])


def test_a_run_of_a_few_cells_can_be_resumed(planned: PlannedRun) -> None:
    directory = begin(only_cells(planned, ["3"]))
    assert [cell.index for cell in directory.read_manifest().plan.cells] == [3]
    check_unchanged(directory, directory.load_experiment(catalog()))


def bundle_of(directory: RunDirectory) -> Any:
    run = SimpleNamespace(directory=directory.path, counts={"ok": 1})
    return SimpleNamespace(archive=Path("few.tar.gz"), run=run)


def test_the_cells_of_a_bundle_are_planned_again(planned: PlannedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ready, "check_ready_for", lambda _: None)
    directory = begin(only_cells(planned, ["3", "5"]))
    again = plan_again(bundle_of(directory), runs=planned.runs)
    assert again.cells == directory.read_manifest().plan.cells
    assert again.plan.chosen
    assert plan_again(bundle_of(begin(planned)), runs=planned.runs).plan == planned.plan


def test_cells_that_are_not_planned_any_more_cannot_be_reproduced(planned: PlannedRun) -> None:
    directory = begin(only_cells(planned, ["3", "6"]))
    directory.experiment_file.write_text(TEXT.replace("repetitions: 3", "repetitions: 2"))
    with pytest.raises(InputError, match=r"1 of its 2 cells are not planned here \(0006-"):
        plan_again(bundle_of(directory), runs=planned.runs)
