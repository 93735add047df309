"""``mplab analyze --cluster``: selected runs, output and exit code."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.analysis.pipeline import analyze
from mplab.base.places import ROOT
from mplab.cli.main import main
from tests.unit.analysis.cluster.runs import content
from tests.unit.analysis.synthetic import Synthetic

pytestmark = pytest.mark.long

SCENARIO = {"label": "files", "name": "download", "parameters": {}}


def mplab(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from mplab.cli.main import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-c", code, "analyze", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=ROOT,
    )


def build(folder: Path, *days: int) -> list[Path]:
    return [Synthetic(folder, repetitions=1, scenarios=[SCENARIO], day=day).build() for day in days]


def test_all_runs_of_a_folder_are_analysed_and_what_is_wrong_is_named(tmp_path: Path) -> None:
    alone, spread = tmp_path / "alone", tmp_path / "spread"
    runs = build(alone, 1, 2, 3)
    shutil.copytree(alone, spread)
    for run in runs[:2]:
        analyze(run)
    for folder in (alone, spread):
        (folder / runs[2].name / "manifest.json").write_text("{}")
    result = mplab("--cluster", "local:2", "--all-runs", "--runs", str(spread), "--json")
    assert result.returncode == 1, result.stderr
    assert result.stderr == ""
    output = json.loads(result.stdout)
    assert [run["run"] for run in output["runs"]] == [run.name for run in runs]
    assert [run["counts"].get("ok") for run in output["runs"]] == [3, 3, None]
    assert [run["error"] is None for run in output["runs"]] == [True, True, False]
    assert "not a run directory" in output["runs"][2]["error"]
    assert content(alone) == content(spread)


def test_one_run_is_summed_up_as_without_a_cluster(tmp_path: Path) -> None:
    first, second = build(tmp_path, 1, 2)
    result = mplab("--cluster", "local:1", "--runs", str(tmp_path), "--memory", "1 GiB", first.name[:8])
    assert result.returncode == 0, result.stderr
    assert f"Report: {first}/report/index.html" in result.stdout
    assert not (second / "report").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--cluster", "lokal"], 2, "--cluster lokal: not local, local:N"),
        (["--cluster", "local", "--memory", "much"], 2, "much: not a size of memory"),
        (["--cluster", "tls://127.0.0.1:1"], 2, "needs --tls-ca"),
        (["--cluster", "local", "--all-runs", "x"], 2, "--all-runs means every run"),
        (["--cluster", "local", "gone"], 2, "no run is called 'gone'"),
        (["--cluster", "local", "--runs", "nothing://x"], 2, "nothing"),
        (["--cluster", "local", "--runs", "memory://x", "--all-runs"], 2, "memory://x: FileNotFoundError"),
        (["--cluster", "local", "--cross-check", "tshark"], 2, "cannot run on a cluster"),
        (["--all-runs"], 2, "need --cluster"),
        (["--runs", "s3://x"], 2, "need --cluster"),
        (["--cluster", "tcp://127.0.0.1:1"], 3, "tcp://127.0.0.1:1: no scheduler answers"),
    ],
)
def test_what_cannot_be_done_is_said_so(
    *,
    arguments: list[str],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    build(tmp_path, 1)
    monkeypatch.setenv("MPLAB_RUNS", str(tmp_path))
    monkeypatch.setattr("mplab.analysis.cluster.connect.CONNECT_S", 0.5)
    monkeypatch.setattr("sys.argv", ["mplab", "analyze", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == code
    assert words in capsys.readouterr().err


def test_dask_that_is_not_installed_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("mplab.analysis.cluster")]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("dask", "distributed", "fsspec"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("sys.argv", ["mplab", "analyze", "--cluster", "local"])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 3
    assert "pip install 'mplab[cluster]'" in capsys.readouterr().err
