"""Reading run directories: complete, cut off, of another version, and folders that are no run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.analysis.errors import NotARunError
from mplab.analysis.record.links import tolerance_of
from mplab.analysis.record.run import read_run
from tests.unit.analysis.synthetic import Synthetic

Builder = Callable[..., Synthetic]


def test_reads_a_whole_run(synthetic: Builder) -> None:
    run = read_run(synthetic(repetitions=2).build())
    assert run.counts["ok"] == len(run.cells) == 6
    assert run.finished
    assert run.complete
    assert [t.title for t in run.transports] == ["TCP over WiFi", "TCP over LTE", "Multipath TCP"]
    assert [t.single_path for t in run.transports] == [True, True, False]
    assert run.duration_s == pytest.approx(37.0)
    assert (tolerance_of(run, "rtt"), tolerance_of(run, "rate")) == (0.1, 0.1)


def test_partial_and_missing_cells_are_named(synthetic: Builder) -> None:
    states = {2: "partial", 3: "missing"}
    run = read_run(synthetic(repetitions=1, outcome=lambda c: states.get(c["index"], "ok")).build())
    assert [cell.outcome for cell in run.cells] == ["ok", "partial", "missing"]
    assert not run.complete
    assert not run.finished


def test_a_damaged_cell_is_partial_with_its_reason(synthetic: Builder) -> None:
    path = synthetic(repetitions=1).build()
    first, second, third = sorted((path / "cells").iterdir())
    (first / "cell.json").write_text('{"format": 1, "id": ')
    (second / "cell.json").unlink()
    (third / "cell.json").write_text('{"id": "x", "outcome": 5}')
    cells = read_run(path).cells
    assert {cell.outcome for cell in cells} == {"partial"}
    assert "cell.json: Invalid JSON" in cells[0].reasons[0]
    assert cells[1].reasons == ("cell.json is missing",)
    assert "key 'spec' is missing" in cells[2].reasons[0]


def test_a_cut_last_line_and_unknown_events_are_passed_over(synthetic: Builder) -> None:
    path = synthetic(repetitions=1).build()
    with (path / "events.jsonl").open("a") as file:
        file.write('{"t": 1790000100.0, "event": "from_the_future"}\n[1]\n{"t": 17900')
    run = read_run(path)
    assert run.finished
    assert run.events[-1]["event"] == "from_the_future"


def test_a_run_that_has_just_begun(synthetic: Builder) -> None:
    path = synthetic(repetitions=1, outcome=lambda _: "missing").build()
    (path / "events.jsonl").unlink()
    (path / "cells").rmdir()
    run = read_run(path)
    assert run.counts["missing"] == 3
    assert run.duration_s is None


def test_cells_beside_the_plan_are_read(synthetic: Builder) -> None:
    path = synthetic(repetitions=1).build()
    manifest = json.loads((path / "manifest.json").read_text())
    dropped = manifest["plan"]["cells"].pop()
    (path / "manifest.json").write_text(json.dumps(manifest))
    run = read_run(path)
    assert run.cells[-1].id == dropped["id"]
    assert run.cells[-1].ok


def test_a_transport_without_a_look_gets_one_of_its_own(synthetic: Builder) -> None:
    bare = [{"label": "a", "name": "sptcp-a"}, {"label": "b", "name": "b", "colour": "red;}", "marker": "??"}]
    run = read_run(synthetic(repetitions=1, transports=bare).build())
    assert [t.title for t in run.transports] == ["a", "b"]
    assert len({t.colour for t in run.transports}) == len({t.marker for t in run.transports}) == 2
    assert all(t.colour.startswith("#") for t in run.transports)


@pytest.mark.parametrize(
    ("manifest", "problem"),
    [
        (None, "manifest.json is missing"),
        ("{", "manifest.json cannot be read"),
        ('{"format": 2}', "manifest.json has format 2; this mplab reads format 1"),
        ("{}", "manifest.json: key 'run_id' is missing"),
        ("[]", "manifest.json: Input should be"),
    ],
)
def test_what_is_not_a_run_directory(tmp_path: Path, manifest: str | None, problem: str) -> None:
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(NotARunError) as caught:
        read_run(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: not a run directory: ")
    assert problem in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotARunError, match="there is no such folder"):
        read_run(tmp_path / "nowhere")
