"""Parts of a run that resuming keeps, and parts that it makes again."""

import json
from collections.abc import Callable

from mplab.base.errors import StepError
from tests.fakes.bench import RunBench

Planned = Callable[..., RunBench]


def started(run: RunBench) -> list[str]:
    return [event["cell"] for event in run.events("cell_started")]


def tree(run: RunBench, cell: str) -> dict[str, bytes]:
    folder = run.directory.cell_dir(cell)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_complete_cells_are_kept_byte_for_byte(planned: Planned) -> None:
    run = planned(repetitions=3)
    run.lab.script.at("scenario.run", None, None, KeyboardInterrupt())
    run.fails()
    first, second = run.cells
    before = tree(run, first), tree(run, second)
    run.execute()
    assert (tree(run, first), tree(run, second)) == before
    assert started(run).count(first) == started(run).count(second) == 1
    assert len(run.cells) == 3


def test_failed_cells_are_complete(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", StepError("no button"))
    run.execute()
    run.execute()
    assert run.outcomes == ["failed", "ok"]
    assert len(started(run)) == 2


def test_a_failed_cell_that_was_reopened_gets_a_new_attempt(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", StepError("no button"))
    first, _ = run.execute()
    run.directory.reopen_cell(first)
    cells = run.execute()
    assert [attempt.outcome for attempt in cells[first].attempts] == ["failed", "ok"]
    assert (cells[first].attempt, cells[first].outcome) == (2, "ok")


def test_a_damaged_cell_is_made_again_and_what_is_left_of_it_is_kept(planned: Planned) -> None:
    run = planned(repetitions=2)
    first, second = run.execute()
    (run.directory.cell_dir(first) / "cell.json").write_text('{"format": 1, "id": ')
    assert list(run.directory.damaged_cells()) == [first]
    run.directory.reopen_cell(first)
    cells = run.execute()
    assert list(cells) == [first, second]
    assert (cells[first].attempt, cells[second].attempt) == (2, 1)
    attempt_folder = run.directory.cell_dir(first) / "attempts" / "1"
    assert (attempt_folder / "cell.json").read_text() == '{"format": 1, "id": '
    assert (attempt_folder / "scenario.jsonl").is_file()


def test_cells_that_are_on_disk_and_were_not_told_are_told(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.lab.script.at("scenario.run", None, KeyboardInterrupt())
    run.fails()
    (first,) = run.cells
    file = run.directory.events_file
    lines = [line for line in file.read_text().splitlines(keepends=True) if '"cell_finished"' not in line]
    file.write_text("".join(lines))
    run.execute()
    finished = run.events("cell_finished")
    assert [event["cell"] for event in finished] == list(run.cells)
    assert finished[0]["cell"] == first
    assert finished[0]["outcome"] == "ok"


def test_a_partial_cell_of_a_killed_run_becomes_an_attempt(planned: Planned) -> None:
    run = planned()
    (spec,) = run.directory.read_manifest().plan.cells
    partial = run.directory.partial_dir(spec.id)
    partial.mkdir()
    (partial / "scenario.jsonl").write_text("{}\n")
    (cell,) = run.execute().values()
    assert (cell.outcome, cell.attempt) == ("ok", 2)
    assert (run.directory.cell_dir(cell.id) / "attempts" / "1" / "scenario.jsonl").read_text() == "{}\n"


def test_the_plan_is_that_of_the_manifest(planned: Planned) -> None:
    run = planned(repetitions=2)
    run.execute()
    planned_cells = json.loads(run.directory.manifest_file.read_text())["plan"]["cells"]
    assert [cell["id"] for cell in planned_cells] == list(run.cells)
