"""A cell gets its final name only when it is complete; measured data is never deleted."""

import errno
import json
import os
import re
from pathlib import Path

import pytest

from mplab.base.errors import InputError, MplabError
from mplab.format.cell import CellRecord, LinkAsked, LinkMeasured, LinkProof
from mplab.format.link import LinkCondition
from mplab.format.manifest import GitRecord, HostRecord, LabRecord, Manifest
from mplab.format.path import PathCondition
from mplab.format.plan import CellSpec
from mplab.format.record import json_of, utc_now
from mplab.run.blocks import make_plan
from mplab.run.run_directory import RunDirectory
from mplab.scenarios.base import Parameters
from mplab.userfiles.experiments.experiment import Experiment, ScenarioUse, TransportUse
from mplab.userfiles.labs.labuse import VIRTUAL

STARTED = "2026-03-01T12:00:00Z"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "runs", "demo", b"mplab: 1\r\n")


@pytest.fixture
def spec(cells: list[CellSpec]) -> CellSpec:
    return cells[0]


def record(spec: CellSpec, **fields: object) -> CellRecord:
    return CellRecord.model_validate({"id": spec.id, "spec": spec, "outcome": "ok", "started": STARTED, **fields})


def manifest(run: RunDirectory) -> Manifest:
    path = PathCondition.of(7040.0, None, 50.0)
    experiment = Experiment(
        path=run.experiment_file,
        source=b"",
        name="demo",
        title="Demo",
        seed=1,
        repetitions=2,
        lab=VIRTUAL,
        transports=(TransportUse("mptcp", "mptcp", None, "#009e73", "D", "Multipath TCP"),),
        links=(LinkCondition("baseline", "Baseline", "a paper", path, path),),
        scenarios=(ScenarioUse("web", "web", Parameters(), 60.0, 20.0),),
    )
    return Manifest(
        run_id=run.run_id,
        experiment=experiment.record(),
        plan=make_plan(experiment),
        lab=LabRecord(kind="virtual"),
        host=HostRecord(kernel="6.1", cpus=4, memory_bytes=8 * 2**30, distribution="Debian 12", mptcp={"enabled": "1"}),
        versions={"mplab": "0.1.0"},
        git=GitRecord(commit="aac707b", dirty=False),
        started=utc_now(),
    )


def test_a_new_run_has_its_name_and_the_experiment_byte_for_byte(run: RunDirectory) -> None:
    assert re.fullmatch(r"\d{8}T\d{6}Z-demo-[0-9a-f]{6}", run.run_id)
    assert run.experiment_file.read_bytes() == b"mplab: 1\r\n"
    assert run.cells_dir.is_dir()
    assert run.path.stat().st_mode & 0o022 == 0


def test_runs_of_the_same_second_are_apart(tmp_path: Path) -> None:
    runs = {RunDirectory.create(tmp_path, "demo", b"").run_id for _ in range(20)}
    assert len(runs) == 20


def test_the_manifest_is_written_once_and_read_back(run: RunDirectory) -> None:
    written = manifest(run)
    run.write_manifest(written)
    assert RunDirectory.open(run.path).read_manifest() == written
    assert written.plan.cells[0].id == "0001-web-mptcp-baseline-r1"
    with pytest.raises(MplabError, match=r"manifest\.json: exists already and is never rewritten"):
        run.write_manifest(written)


def test_the_manifest_has_the_keys_of_the_design(run: RunDirectory) -> None:
    run.write_manifest(manifest(run))
    content = json.loads(run.manifest_file.read_text(encoding="utf-8"))
    assert list(content) == [
        *("format", "run_id", "experiment", "plan", "lab", "host", "versions", "git", "started"),
    ]
    assert set(content["plan"]) == {"cells", "estimate_s", "skipped", "chosen"}
    assert content["experiment"]["links"][0]["paths"]["wlan0"]["up"] == {
        "rate_kbps": 0.0,
        "delay_ms": 25.0,
        "jitter_ms": 0.0,
        "loss_percent": 0.0,
        "queue": {"bytes": 150_000},
    }
    assert set(content["host"]) == {"kernel", "cpus", "memory_bytes", "distribution", "mptcp"}


def test_a_cell_that_is_complete(run: RunDirectory, spec: CellSpec) -> None:
    partial, attempt = run.begin_attempt(spec.id)
    assert (partial.name, attempt) == (f"{spec.id}.partial", 1)
    (partial / "har").mkdir()
    (partial / "har" / "page.har").write_text("{}", encoding="utf-8")
    proof = LinkProof(
        asked=LinkAsked(down_kbps=7040.0, up_kbps=None, rtt_ms=50.0, loss_percent=0.0),
        measured=LinkMeasured(down_kbps=7001.5, rtt_ms_median=50.4),
    )
    written = record(spec, links={"wlan0": proof}, timings_s={"probe": 1.5})
    complete = run.finish_cell(written)
    assert complete == run.cell_dir(spec.id)
    assert sorted(path.name for path in complete.iterdir()) == ["cell.json", "har"]
    assert [path.name for path in run.cells_dir.iterdir()] == [spec.id]
    assert run.complete_cells() == {spec.id: written}


def test_cell_json_has_the_keys_of_the_design(run: RunDirectory, spec: CellSpec) -> None:
    run.begin_attempt(spec.id)
    content = json.loads((run.finish_cell(record(spec)) / "cell.json").read_text(encoding="utf-8"))
    assert " ".join(content) == (
        "format id spec outcome reasons warnings attempt attempts started timings_s links proof captures "
        "congestion_control host clock_offset_ms phone"
    )
    assert content["spec"] == json_of(spec)


def test_a_failed_attempt_is_kept_whole(run: RunDirectory, spec: CellSpec) -> None:
    for number in (1, 2, 3):
        partial, attempt = run.begin_attempt(spec.id)
        assert attempt == number
        assert [path.name for path in partial.iterdir() if path.name != "attempts"] == []
        (partial / "scenario.jsonl").write_text(f"attempt {number}", encoding="utf-8")
        (partial / "logs").mkdir()
    complete = run.finish_cell(record(spec, attempt=3))
    assert (complete / "scenario.jsonl").read_text(encoding="utf-8") == "attempt 3"
    for number in (1, 2):
        folder = complete / "attempts" / str(number)
        assert (folder / "scenario.jsonl").read_text(encoding="utf-8") == f"attempt {number}"
        assert (folder / "logs").is_dir()


def test_an_attempt_that_left_nothing_does_not_count(run: RunDirectory, spec: CellSpec) -> None:
    assert run.begin_attempt(spec.id)[1] == 1
    assert run.begin_attempt(spec.id)[1] == 1


def test_a_killed_run_leaves_a_partial_cell_that_is_not_complete(run: RunDirectory, spec: CellSpec) -> None:
    partial, _ = run.begin_attempt(spec.id)
    (partial / "cell.json").write_text("{", encoding="utf-8")
    assert run.complete_cells() == {}


def test_a_complete_cell_is_not_begun_again_unless_it_is_reopened(run: RunDirectory, spec: CellSpec) -> None:
    run.begin_attempt(spec.id)
    run.finish_cell(record(spec, outcome="failed", reasons=["The browser was gone."]))
    with pytest.raises(MplabError, match="the cell is complete already"):
        run.begin_attempt(spec.id)
    run.reopen_cell(spec.id)
    partial, attempt = run.begin_attempt(spec.id)
    assert attempt == 2
    assert json.loads((partial / "attempts" / "1" / "cell.json").read_text(encoding="utf-8"))["outcome"] == "failed"
    run.finish_cell(record(spec, attempt=2))
    assert run.read_cell(spec.id).outcome == "ok"


def test_cell_json_is_written_once(run: RunDirectory, spec: CellSpec) -> None:
    run.begin_attempt(spec.id)
    run.finish_cell(record(spec))
    with pytest.raises(MplabError, match="complete already"):
        run.finish_cell(record(spec, outcome="invalid"))
    assert run.read_cell(spec.id).outcome == "ok"


def test_a_cell_that_was_not_begun_cannot_be_finished(run: RunDirectory, spec: CellSpec) -> None:
    with pytest.raises(MplabError, match=r"cell\.json: cannot be written: No such file"):
        run.finish_cell(record(spec))


def test_a_full_disk_leaves_the_cell_partial(
    run: RunDirectory, spec: CellSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.begin_attempt(spec.id)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(MplabError, match=r"^disk full: .* make space, then 'mplab resume'"):
            run.finish_cell(record(spec))
    assert run.complete_cells() == {}
    run.finish_cell(record(spec))
    assert list(run.complete_cells()) == [spec.id]


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a run directory: no manifest\.json in it"):
        RunDirectory.open(tmp_path)
    with pytest.raises(InputError, match="not a run directory: no such directory"):
        RunDirectory.open(tmp_path / "nowhere")
    assert RunDirectory(tmp_path).complete_cells() == {}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cell.json: cannot be read: No such file"),
        ("", "cell.json: not a CellRecord of format 1: "),
        ('{"format": 2}', "cell.json: not a CellRecord of format 1: format:"),
    ],
)
def test_a_damaged_cell_is_not_complete_and_can_be_made_again(
    run: RunDirectory, spec: CellSpec, content: str | None, problem: str
) -> None:
    run.cell_dir(spec.id).mkdir()
    (run.cell_dir(spec.id) / "scenario.jsonl").write_text("measured", encoding="utf-8")
    if content is not None:
        (run.cell_dir(spec.id) / "cell.json").write_text(content, encoding="utf-8")
    assert run.complete_cells() == {}
    assert list(run.damaged_cells()) == [spec.id]
    assert problem in run.damaged_cells()[spec.id]
    run.reopen_cell(spec.id)
    assert run.earlier_attempts(spec.id) == []
    partial, attempt = run.begin_attempt(spec.id)
    assert attempt == 2
    assert (partial / "attempts" / "1" / "scenario.jsonl").read_text(encoding="utf-8") == "measured"
    run.finish_cell(record(spec, attempt=2))
    assert run.damaged_cells() == {}
    assert list(run.complete_cells()) == [spec.id]


def test_a_lost_manifest_is_told_with_what_to_do(run: RunDirectory) -> None:
    run.events_file.touch()
    with pytest.raises(
        InputError, match=r"its manifest\.json is lost: take it from a copy or bundle of the run, or run"
    ):
        RunDirectory.open(run.path)


@pytest.mark.parametrize("cell_id", ["..", "a/b", "", "0001-web.partial"])
def test_only_cell_ids_name_cells(run: RunDirectory, cell_id: str) -> None:
    with pytest.raises(ValueError, match="not a cell id"):
        run.cell_dir(cell_id)


def test_a_place_where_no_run_can_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MplabError, match="cannot be written"):
        RunDirectory.create(tmp_path / "file", "demo", b"")
