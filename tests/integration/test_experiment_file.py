"""Keys of an experiment file that do not describe cells: inheritance, variables, hooks, stop rules."""

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

BASE = """\
mplab: 1
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: "${rtt} ms"}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
tolerance: {rtt: 60 %, rate: 50 %}
transports: [sptcp-wifi]
vars: {rtt: 10}
"""
SAYS = "import os, socket; print(os.environ['MPLAB_HOOK'], os.environ.get('MPLAB_OUTCOME'), *socket.if_nameindex())"
"""A program that prints the hook and the interfaces; those of a lab would differ."""
OWN = """\
mplab: 1
name: hooked
extends: base.yaml
retries: 1
repetitions: ${often}
vars: {often: 2, size: 1 MB}
scenarios:
  - download: {sizes: ["${size}"]}
hooks:
  before_run: [SAYS]
  before_cell: [SAYS]
  after_cell: [SAYS]
  after_run: [SAYS]
""".replace("SAYS", json.dumps([sys.executable, "-c", SAYS]))


def said(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if not line.startswith("#")]


def manifest(run: Path) -> Any:
    return json.loads((run / "manifest.json").read_text())


def test_a_run_has_all_that_its_experiment_was_made_of(mplab: Mplab, tmp_path: Path) -> None:
    """Run hooks outside the lab; bundle, reproduce and resume without the original files."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "base.yaml").write_text(BASE)
    (folder / "own.yaml").write_text(OWN)
    result = mplab("run", str(folder / "own.yaml"), "--set", "often=1", "--set", "size=10 kB")
    assert result.returncode == 0, result.stdout + result.stderr
    shutil.rmtree(folder)
    run = only_run(tmp_path)
    (cell,) = cells(run).values()
    (observed,) = [line for line in _observations(run) if line["event"] == "download"]
    assert observed["size_bytes"] == 10_000
    assert manifest(run)["experiment"]["variables"] == {"often": 1, "size": "10 kB", "rtt": 10}
    here = " ".join(map(str, _interfaces()))
    assert said(run / "logs" / "hooks.log") == [f"before_run  {here}", f"after_run ok {here}"]
    assert said(run / "cells" / cell["id"] / "logs" / "hooks.log") == [f"before_cell  {here}", f"after_cell ok {here}"]
    assert {"before_cell", "after_cell"} <= cell["timings_s"].keys()

    bundle = tmp_path / "run.tar.gz"
    assert mplab("bundle", str(run), "-o", str(bundle)).returncode == 0
    refused = mplab("reproduce", str(bundle))
    assert refused.returncode == 2
    assert "its hooks are commands that would be run on this host: before_run:" in refused.stderr
    shutil.rmtree(run)
    again = mplab("reproduce", str(bundle), "--allow-hooks", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads(again.stdout)["report"]["same"]
    second = only_run(tmp_path)
    assert (second / "experiment" / "1-base.yaml").read_text() == BASE
    assert manifest(second)["experiment"]["variables"]["size"] == "10 kB"

    moved = second.rename(tmp_path / "moved")
    (unfinished,) = (moved / "cells").iterdir()
    shutil.rmtree(unfinished)
    result = mplab("resume", str(moved), "--no-report")
    assert result.returncode == 0, result.stderr
    assert len(cells(moved)) == 1


def _observations(run: Path) -> list[dict[str, Any]]:
    (path,) = run.glob("cells/*/scenario.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


def _interfaces() -> list[tuple[int, str]]:
    return socket.if_nameindex()


BLOCKS = 10
STOPS = f"""\
mplab: 1
name: told
extends: base.yaml
transports: [sptcp-wifi, sptcp-lte]
repetitions: {BLOCKS}
retries: 2
scenarios:
  - download: {{sizes: [10 kB]}}
stop:
  interval: {{metric: download_time, within: 100 %, after: 3}}
"""


def test_a_run_that_has_told_enough_ends(mplab: Mplab, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(BASE)
    file = tmp_path / "told.yaml"
    file.write_text(STOPS)
    result = mplab("run", str(file))
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    looks = [event for event in events if event["event"] == "interval_checked"]
    assert [event["blocks"] for event in looks] == list(range(3, 3 + len(looks))), "not before the third block"
    assert [event["enough"] for event in looks] == [False] * (len(looks) - 1) + [True]
    (cut,) = [event for event in events if event["event"] == "run_cut"]
    blocks = looks[-1]["blocks"]
    assert (len(cells(run)), len(cut["cells"])) == (2 * blocks, 2 * (BLOCKS - blocks))
    (width,) = cut["interval"]["widths"]
    assert width["what"].startswith("download · fast · 10 kB: sptcp-")
    assert (width["n"], width["percent"] <= 100) == (blocks, True)
    summary = json.loads((run / "report" / "summary.json").read_text())
    (group,) = [metric for metric in summary["metrics"] if metric["metric"] == "download_time"]
    (contrast,) = group["contrasts"]
    assert contrast["interval"] == pytest.approx([width["low"], width["high"]]), "as the report has it"
    assert "ended before" in result.stderr
    report = (run / "report" / "index.html").read_text()
    assert f"The run ended before {len(cut['cells'])} cells of {2 * BLOCKS} planned, by its own rules: " in report

    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(STOPS.replace("download_time", "download_tim"))
    result = mplab("plan", str(wrong))
    assert result.returncode == 2
    assert "wrong.yaml:10: stop.interval: unknown metric 'download_tim'" in result.stderr
