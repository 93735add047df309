"""A run of the virtual lab is bundled; then its report and its experiment are reproduced from the bundle."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.integration.conftest import Mplab, Traces, environment
from tests.integration.test_run import EXPERIMENT


def manifest(run: Path) -> Any:
    return json.loads((run / "manifest.json").read_text())


def test_a_run_is_bundled_and_reproduced(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(EXPERIMENT.format(repetitions=1).replace("name: tiny", "name: tiny\nseed: 4711"))
    first = mplab("run", str(file))
    assert first.returncode == 0, first.stdout + first.stderr
    (run,) = (tmp_path / "runs").iterdir()
    bundle = tmp_path / "whole.tar.gz"
    for name, options in ((bundle, ()), (tmp_path / "small.tar.gz", ("--no-tables",))):
        result = mplab("bundle", str(run), "-o", str(name), *options)
        assert result.returncode == 0, result.stderr

    gone = tmp_path / "gone"
    shutil.move(run, gone)
    small = mplab("reproduce", str(tmp_path / "small.tar.gz"), "--report-only", "--json")
    assert small.returncode == 0, small.stdout + small.stderr
    report = json.loads(small.stdout)["report"]
    assert report["differences"] == []
    tables = len(list(gone.glob("cells/*/tables/**/*.parquet")))
    assert report["files"] > tables > 0

    _refused_where_the_plan_is_another(bundle, tmp_path)
    before = Traces()
    again = mplab("reproduce", str(bundle), "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert Traces().left_since(before) == []
    content = json.loads(again.stdout)
    assert content["report"]["same"]
    results = content["results"]
    assert results["outcomes"] == {"ok": 2, "invalid": 0, "failed": 0}
    assert results["agreement"] == "cannot be told", "one repetition says nothing"
    assert {metric["verdict"] for metric in results["metrics"]} == {"too few"}
    (second,) = (tmp_path / "runs").iterdir()
    assert results["run"] == str(second)
    assert manifest(second)["plan"] == manifest(gone)["plan"]
    assert manifest(second)["experiment"]["seed"] == 4711
    assert (second / "experiment.yaml").read_bytes() == file.read_bytes()
    assert (second / "report" / "index.html").is_file()


def _refused_where_the_plan_is_another(bundle: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from mplab.drivers.transport.mptcp.driver import MptcpDriver;"
        "MptcpDriver.missing_reason = lambda _: 'this kernel has none';"
        "from mplab.cli.main import main; sys.argv = ['mplab', 'reproduce', sys.argv[1]]; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(bundle)],
        capture_output=True,
        text=True,
        check=False,
        env=environment(tmp_path),
    )
    assert result.returncode == 2, result.stderr
    assert "of its 2 cells are not planned here" in result.stderr
    assert "mptcp: this kernel has none" in result.stderr
    assert list((tmp_path / "runs").iterdir()) == []


def test_results_that_cannot_be_had_again_differ(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(
        EXPERIMENT.format(repetitions=4).replace("[sptcp-wifi, mptcp]", "[sptcp-wifi]").replace(", 1 MB]", "]")
    )
    assert mplab("run", str(file), "--no-report").returncode == 0
    (run,) = (tmp_path / "runs").iterdir()
    for path in run.glob("cells/*/scenario.jsonl"):
        path.write_text("".join(_slower(line) for line in path.read_text().splitlines()))
    assert mplab("analyze", str(run)).returncode == 0
    assert mplab("bundle", str(run), "-o", str(tmp_path / "b.tar.gz")).returncode == 0
    again = mplab("reproduce", str(tmp_path / "b.tar.gz"), "--runs", str(tmp_path / "others"), "--json")
    assert again.returncode == 4, again.stdout + again.stderr
    assert "1 result not as in" in again.stderr
    content = json.loads(again.stdout)
    assert content["report"]["same"]
    assert content["results"]["agreement"] == "differs"
    verdicts = {metric["metric"]: metric["verdict"] for metric in content["results"]["metrics"]}
    assert verdicts["download_time"] == "better"


def _slower(line: str) -> str:
    """Return a line of scenario.jsonl with 5 s added to the download time."""
    record = json.loads(line)
    if record["event"] == "download":
        record["total_s"] += 5
    return json.dumps(record) + "\n"
