"""``mplab runs``: the runs of a folder, the newest first."""

import json
import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mplab.run
from mplab.base.lock import machine, resource_lock
from mplab.cli.main import app
from mplab.dashboard.watch import Watcher
from mplab.run.progress import RECENT_S
from mplab.run.run_directory import RunDirectory
from tests.unit.analysis.synthetic import Synthetic


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two runs and a damaged one."""
    for day in (23, 22):
        Synthetic(tmp_path / "runs", repetitions=2, day=day).build()
    broken = tmp_path / "runs" / "20260101T000000Z-demo-aaaaaa"
    broken.mkdir()
    (broken / "manifest.json").write_text("{}", encoding="utf-8")
    return tmp_path / "runs"


def test_runs_are_listed_the_newest_first(folder: Path) -> None:
    result = CliRunner().invoke(app, ["runs", "--runs", str(folder), "--json"])
    newest, older, broken = json.loads(result.stdout)
    assert (newest["run_id"][:8], older["run_id"][:8]) == ("20260923", "20260922")
    assert newest["experiment"] == "demo"
    assert 0 < newest["ok"] <= newest["planned"]
    assert (broken["state"], broken["finished"]) == ("unreadable", False)
    assert "run_id" in broken["problem"]


@pytest.mark.parametrize("events", [1, 2, 3])
def test_a_run_that_no_process_executes_is_killed(tmp_path: Path, events: int) -> None:
    run = Synthetic(tmp_path / "runs", repetitions=2).build()
    lines = (run / "events.jsonl").read_text().splitlines(keepends=True)
    (run / "events.jsonl").write_text("".join(lines[:events]))

    def states() -> list[str]:
        verbs = (["runs", "--json", "--runs", str(run.parent)], ["status", str(run), "--json"])
        listed, status = (json.loads(CliRunner().invoke(app, verb).stdout) for verb in verbs)
        return [listed[0]["state"], status["state"]]

    assert states() == ["killed", "killed"]
    with resource_lock(RunDirectory(run).lock_name):
        assert set(states()) == {"planned" if events == 1 else "running"}


@pytest.mark.parametrize(
    ("user", "host", "states"),
    [
        (0, machine(), ["killed", "killed"]),
        (0, "", ["killed", "killed"]),
        (0, "another", ["running", "unknown"]),
        (1, machine(), ["running", "unknown"]),
    ],
)
def test_a_process_that_cannot_be_seen_is_not_called_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, host: str, states: list[str]
) -> None:
    run = Synthetic(tmp_path / "runs", repetitions=2).build()
    planned, started, first = map(json.loads, (run / "events.jsonl").read_text().splitlines()[:3])
    monkeypatch.setattr(os, "getuid", lambda: run.stat().st_uid + user)
    verbs = (["runs", "--json", "--runs", str(run.parent)], ["status", str(run), "--json"])
    for quiet_s, state in zip((0, RECENT_S), states, strict=True):
        shift = time.time() - quiet_s - first["t"]
        events = [{**event, "t": event["t"] + shift} for event in ({**planned, "machine": host}, started, first)]
        (run / "events.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events))
        listed, status = (json.loads(CliRunner().invoke(app, verb).stdout) for verb in verbs)
        shown = Watcher([run.parent]).snapshot().run(run.name)
        assert shown is not None
        assert (listed[0]["state"], status["state"], shown.state) == (state, state, state)
    read = mplab.run.status(run)
    assert read.can_resume, "its process may be dead"
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != run or mode != os.W_OK)
    assert read.can_resume is (read.state == "killed")


def test_a_folder_can_be_an_argument(folder: Path) -> None:
    result = CliRunner().invoke(app, ["runs", str(folder)])
    assert [line[:8] for line in result.stdout.splitlines()[1:]] == ["20260923", "20260922"]
    assert "manifest.json" in result.stderr


def test_a_folder_without_runs_is_no_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["runs", str(tmp_path)])
    assert (result.exit_code, "no run in it" in result.stdout) == (0, True)
