"""A run of a few cells of a plan: they are the same cells, and the run can be resumed."""

from pathlib import Path

import pytest

from mplab.base.errors import InputError
from mplab.lab.catalog import catalog
from mplab.run.hostside.beginning import begin
from mplab.run.planning import PlannedRun, load, only_cells, plan_of
from mplab.run.resuming import check_unchanged

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


@pytest.mark.parametrize("name", ["0", "7", "0001-download", ""])
def test_a_cell_that_the_plan_lacks_is_refused(planned: PlannedRun, name: str) -> None:
    with pytest.raises(InputError, match=rf"few\.yaml: no cell of the plan is called '{name}'"):
        only_cells(planned, ["1", name])


def test_a_run_of_a_few_cells_can_be_resumed(planned: PlannedRun) -> None:
    directory = begin(only_cells(planned, ["3"]))
    assert [cell.index for cell in directory.read_manifest().plan.cells] == [3]
    check_unchanged(directory, directory.load_experiment(catalog()))
