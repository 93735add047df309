"""Resuming a complete run, or a run whose lab is busy, changes nothing."""

import errno
import json
import os
import re
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError, LabNotReadyError, MplabError
from mplab.base.lock import resource_lock
from mplab.cli.main import app
from mplab.format.cell import CellRecord, Outcome
from mplab.format.events import EventLog, read_events
from mplab.format.manifest import GitRecord
from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, RunEvent, RunFinished, RunStarted
from mplab.lab.resources import VIRTUAL_LAB
from mplab.run import resuming
from mplab.run.executing import RunResult
from mplab.run.hostside import concluding, hosting, ready
from mplab.run.hostside.beginning import begin
from mplab.run.planning import plan
from mplab.run.progress import SILENT, RunCallbacks, RunProgress
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment
from tests.fakes.eventlines import read_lines

EXPERIMENT = """\
mplab: 1
name: tiny
transports: [sptcp-wifi, sptcp-lte]
links: [baseline]
scenarios: [{download: {sizes: [10 kB]}}]
"""
Command = Callable[..., Result]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(EXPERIMENT)
    return path


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of runs, on a machine that lacks nothing; the test has its own locks."""
    monkeypatch.setattr("mplab.base.lock.default_lock_directory", lambda: tmp_path / "locks")
    monkeypatch.setattr(ready, "check_ready_for", lambda _experiment: None)
    return tmp_path / "runs"


def begun(experiment: Path, runs: Path) -> RunDirectory:
    return begin(plan(experiment, runs=runs))


def finish(directory: RunDirectory, outcome: Outcome = "ok", *, cells: int = 2, ended: bool = True) -> None:
    with EventLog(directory.events_file) as events:
        events.append(RunStarted())
        for spec in directory.read_manifest().plan.cells[:cells]:
            directory.begin_attempt(spec.id)
            directory.finish_cell(record(spec, outcome))
            events.append(CellFinished(cell=spec.id, outcome=outcome, duration_s=1.0))
        if ended:
            events.append(RunFinished())
            directory.junit_file.write_text("<testsuites/>")
            (directory.path / "report").mkdir()
            (directory.path / "report" / "index.html").write_text("report")
            (directory.path / "report" / "summary.json").write_text("{}")


def record(spec: CellSpec, outcome: str) -> CellRecord:
    fields = {"id": spec.id, "spec": spec, "outcome": outcome, "started": "2026-03-01T12:00:00Z"}
    return CellRecord.model_validate(fields)


def tree(path: Path) -> dict[str, tuple[bytes, int]]:
    return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in path.rglob("*") if file.is_file()}


def mplab(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(("outcome", "code", "options"), [("ok", 0, ()), ("failed", 1, ()), ("ok", 0, ("--failed",))])
def test_a_complete_run_is_said_to_be_complete_and_not_touched(
    experiment: Path, runs: Path, outcome: Outcome, code: int, options: tuple[str, ...]
) -> None:
    directory = begun(experiment, runs)
    finish(directory, outcome)
    before = tree(directory.path)
    with resource_lock(VIRTUAL_LAB, run_id="another"):
        result = mplab("resume", directory.path, "--json", *options)
    assert result.exit_code == code
    counts = {"ok": "2 of 2", "failed": "0 of 2"}[outcome]
    assert f"{directory.run_id}: complete: {counts} cells are ok" in result.stderr
    assert tree(directory.path) == before


def test_what_is_missing_after_the_cells_of_a_complete_run_is_made(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = begun(experiment, runs)
    finish(directory)
    directory.junit_file.unlink()
    analysed: list[Path] = []
    monkeypatch.setattr(concluding, "analyze", lambda path, _progress: analysed.append(path))
    events = directory.events_file.read_bytes()
    assert mplab("resume", directory.path, "--quiet").exit_code == 0
    assert directory.junit_file.is_file()
    assert analysed == [directory.path]
    assert directory.events_file.read_bytes() == events


@pytest.mark.parametrize("options", [(), ("--failed",)])
def test_nothing_is_written_into_a_run_whose_lab_is_busy(
    experiment: Path, runs: Path, options: tuple[str, ...]
) -> None:
    directory = begun(experiment, runs)
    finish(directory, "failed", cells=1, ended=False)
    before = tree(directory.path)
    with resource_lock(VIRTUAL_LAB, run_id="another"):
        result = mplab("resume", directory.path, *options)
    assert isinstance(result.exception, LabNotReadyError)
    assert "virtual-lab is in use by run another" in str(result.exception)
    assert tree(directory.path) == before


def test_a_run_that_does_not_get_its_lab_leaves_no_directory(experiment: Path, runs: Path) -> None:
    with resource_lock(VIRTUAL_LAB, run_id="another"):
        result = mplab("run", experiment, "--runs", runs)
    assert isinstance(result.exception, LabNotReadyError)
    assert not runs.exists()


def test_the_lab_is_free_again_when_the_cells_have_been_run(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run_cells(
        directory: RunDirectory, experiment: Experiment, locks: ExitStack, *, watch: RunCallbacks
    ) -> RunProgress:
        with locks:
            assert experiment.name == "tiny"
            assert watch is not SILENT
            finish(directory)
            for name in (VIRTUAL_LAB, directory.lock_name):
                with pytest.raises(LabNotReadyError), resource_lock(name):
                    pass
        return RunProgress.from_events(read_events(directory.events_file, RunEvent))

    def analyse(*_: object) -> None:
        with resource_lock(VIRTUAL_LAB):
            pass

    monkeypatch.setattr(hosting, "run_cells", run_cells)
    monkeypatch.setattr(concluding, "analyze", analyse)
    assert mplab("run", experiment, "--runs", runs, "--quiet").exit_code == 0


@pytest.mark.parametrize("verb", ["pause", "continue"])
def test_a_complete_run_is_not_told_to_be_resumed(experiment: Path, runs: Path, verb: str) -> None:
    directory = begun(experiment, runs)
    finish(directory)
    result = mplab(verb, directory.path)
    assert isinstance(result.exception, InputError)
    assert "is complete: all of its 2 cells have been run" in str(result.exception)


def test_a_run_that_was_interrupted_is_told_to_be_resumed(experiment: Path, runs: Path) -> None:
    directory = begun(experiment, runs)
    finish(directory, cells=1, ended=False)
    result = mplab("pause", directory.path)
    assert isinstance(result.exception, MplabError)
    assert "is not running: 'mplab resume' continues" in str(result.exception)


def test_a_damaged_cell_is_not_counted_as_done_and_made_again(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = begun(experiment, runs)
    finish(directory)
    (damaged, _) = directory.complete_cells()
    (directory.cell_dir(damaged) / "cell.json").write_text('{"form')
    shown = mplab("status", directory.path, "--json")
    status = json.loads(shown.stdout)
    assert (status["done"], status["remaining"], status["damaged"]) == (1, 1, [damaged])
    assert "mplab resume" in mplab("status", directory.path).stdout

    executed: list[RunDirectory] = []

    def finished(directory: RunDirectory, *_arguments: object, **_options: object) -> RunResult:
        executed.append(directory)
        return RunResult(directory.path, RunProgress(), None)

    monkeypatch.setattr(resuming, "finish", finished)
    result = mplab("resume", directory.path)
    assert result.exit_code == 0, result.exception
    assert f"{damaged}/cell.json: not a CellRecord of format 1" in result.stderr
    assert "kept in its folder 'attempts'" in result.stderr
    assert len(executed) == 1
    (resumed,) = (event for event in read_lines(directory.events_file) if event["event"] == "run_resumed")
    assert (resumed["complete"], resumed["again"]) == (1, [damaged])
    assert directory.partial_dir(damaged).is_dir()


def test_a_run_that_cannot_be_written_leaves_nothing_that_looks_like_one(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    runs.mkdir()
    with monkeypatch.context() as patch:
        patch.setattr("mplab.base.files.os.fsync", full)
        with pytest.raises(MplabError) as caught:
            begun(experiment, runs)
    assert str(caught.value).startswith("disk full: ")
    assert str(caught.value).endswith("make space, then start the run again")
    assert list(runs.iterdir()) == []


def test_a_run_that_cannot_be_written_into_is_one_error_of_the_analysis(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = begun(experiment, runs)

    def read_only(path: Path, **_options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path / ".scores.json.1"))

    monkeypatch.setattr(concluding, "analyze_run", read_only)
    result = mplab("analyze", directory.path)
    assert isinstance(result.exception, MplabError)
    assert re.search(r"scores\.json\.1: Read-only file system: the analysis writes", str(result.exception))


def test_resume_says_when_the_checkout_is_another_one(
    experiment: Path, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = begun(experiment, runs)
    monkeypatch.setattr("mplab.run.hostside.host.describe_git", lambda: GitRecord(commit="0123abc", dirty=False))
    monkeypatch.setattr(resuming, "finish", lambda *_, **_options: RunResult(directory.path, RunProgress(), None))
    result = mplab("resume", directory.path)
    assert "this is 0123abc: scenarios, pages and services may differ" in result.stderr
    (resumed,) = (event for event in read_lines(directory.events_file) if event["event"] == "run_resumed")
    assert resumed["git"] == {"commit": "0123abc", "dirty": False}
