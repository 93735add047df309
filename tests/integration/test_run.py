"""Runs from the experiment file to the report: complete, interrupted, killed, resumed, and on a full disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import pytest

from tests.integration.conftest import Mplab, Traces, environment, lab_processes, mplab_argv, wait_until

Start = Callable[..., subprocess.Popen[str]]

EXPERIMENT = """\
mplab: 1
name: tiny
repetitions: {repetitions}
transports: [sptcp-wifi, mptcp]
links:
  - name: fast
    wifi: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}}
    lte: {{down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}}
scenarios:
  - download: {{sizes: [10 kB, 1 MB]}}
tolerance: {{rtt: 60 %, rate: 50 %}}
retries: 2
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Callable[..., str]:
    def write(repetitions: int = 1) -> str:
        path = tmp_path / "tiny.yaml"
        path.write_text(EXPERIMENT.format(repetitions=repetitions))
        return str(path)

    return write


def only_run(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "runs").iterdir()
    return path


def cells(run: Path) -> dict[str, Any]:
    return {path.parent.name: json.loads(path.read_text()) for path in sorted(run.glob("cells/*/cell.json"))}


def skip_when_busy(record: Mapping[str, Any]) -> None:
    """Skip the test if its cell is invalid only because the host was too busy."""
    if record["outcome"] == "invalid" and all("too busy" in reason for reason in record["reasons"]):
        pytest.skip(f"{record['attempt']} attempts: {'; '.join(record['reasons'])}")


def tree(directory: Path) -> dict[str, bytes]:
    return {str(p.relative_to(directory)): p.read_bytes() for p in sorted(directory.rglob("*")) if p.is_file()}


def test_from_an_experiment_file_to_a_report(mplab: Mplab, experiment: Callable[..., str], tmp_path: Path) -> None:
    before = Traces()
    result = mplab("run", experiment(), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    assert json.loads(result.stdout)["outcomes"] == {"ok": 2, "invalid": 0, "failed": 0}

    planned = json.loads((run / "manifest.json").read_text())["plan"]["cells"]
    assert list(cells(run)) == [cell["id"] for cell in planned]
    for cell in cells(run).values():
        _check_cell(run / "cells" / cell["id"], cell)

    first = tree(run)
    assert "report/index.html" in first
    assert mplab("analyze", str(run)).returncode == 0
    again = tree(run)
    assert [name for name in first if first[name] != again.get(name)] == []
    assert Traces().left_since(before) == []


def _check_cell(directory: Path, cell: dict[str, Any]) -> None:
    assert cell["outcome"] == "ok"
    assert set(cell["links"]) == {"wlan0", "rmnet0"}
    assert cell["congestion_control"]["agent"] == "cubic"
    assert {c["file"] for c in cell["captures"]} == {
        "phone-wlan0.pcapng",
        "phone-rmnet0.pcapng",
        "phone-lo.pcapng",
        "proxy.pcapng",
    }
    both = cell["proof"]["subflows"]
    if cell["spec"]["transport"] == "mptcp":
        assert both["wlan0"]["bytes_down"] > 0
        assert both["rmnet0"]["bytes_down"] > 0
    else:
        assert set(both) == {"wlan0"}
    observations = [json.loads(line) for line in (directory / "scenario.jsonl").read_text().splitlines()]
    assert {o["size_bytes"] for o in observations if o["event"] == "download"} == {10_000, 1_000_000}
    agent = [json.loads(line) for line in (directory / "logs" / "agent.jsonl").read_text().splitlines()]
    downloads = [c for c in agent if c["event"] == "connection" and c["dst"] == "10.65.0.2:80"]
    assert len(downloads) == 2
    assert all(c["bytes_down"] >= 10_000 and c["process"] == "curl" for c in downloads)
    secret_like = [p for p in directory.rglob("*") if p.is_file() and b"secret" in p.read_bytes()]
    assert secret_like == []


def test_primary_path_and_backup_mode_are_what_was_asked(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "modes.yaml"
    modes = "mptcp: {primary: lte, label: lte-first}", "mptcp: {mode: backup, label: lte-backup}"
    path.write_text(
        EXPERIMENT.format(repetitions=1)
        .replace("[sptcp-wifi, mptcp]", "[" + ", ".join(f"{{{mode}}}" for mode in modes) + "]")
        .replace("10 kB, ", "")
    )
    result = mplab("run", str(path), "--no-report")
    assert result.returncode == 0, result.stderr
    proofs = {c["spec"]["transport"]: c["proof"] for c in cells(only_run(tmp_path)).values()}
    assert all(path["bytes_down"] > 0 for path in proofs["lte-first"]["subflows"].values())
    backup = proofs["lte-backup"]["subflows"]
    assert backup["wlan0"]["bytes_down"] >= 1_000_000
    assert backup["rmnet0"]["established"] > 0
    assert backup["rmnet0"]["bytes_down"] == 0


def browser_processes() -> list[psutil.Process]:
    """Return the first process of the browser in any running lab."""
    return [p for p in lab_processes() if "--remote-debugging-pipe" in p.cmdline() and "--type" not in str(p.cmdline())]


def test_repetitions_inside_a_cell_are_kept_and_each_has_a_new_connection(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "repeat.yaml"
    path.write_text(
        EXPERIMENT.format(repetitions=1)
        .replace("[sptcp-wifi, mptcp]", "[mptcp]")
        .replace("[10 kB, 1 MB]", "[10 kB, 100 kB], repeat: 3")
    )
    result = mplab("run", str(path), "--json")
    assert result.returncode == 0, result.stderr
    run = only_run(tmp_path)
    (name,) = cells(run)
    scores = json.loads((run / "cells" / name / "scores.json").read_text())["values"]
    numbers = [row["repeat"] for row in scores if row["metric"] == "download_time" and row["labels"]["size"] == "10 kB"]
    assert numbers == [1, 2, 3]
    observed = [json.loads(line) for line in (run / "cells" / name / "scenario.jsonl").read_text().splitlines()]
    ports = [item["local_port"] for item in observed if item["event"] == "download"]
    assert len(set(ports)) == 6
    connections = pl.read_parquet(run / "cells" / name / "tables" / "connections.parquet")
    assert connections.filter(kind="mptcp").height >= 6, "a new connection each"
    groups = json.loads((run / "report" / "summary.json").read_text())["metrics"]
    (series,) = next(g for g in groups if g["metric"] == "download_time" and g["labels"]["size"] == "10 kB")[
        "transports"
    ]
    assert (series["cells"], series["n"], series["values"]) == (1, 1, 3)


def test_a_browser_that_crashes_is_retried_and_both_attempts_are_kept(start_mplab: Start, tmp_path: Path) -> None:
    path = tmp_path / "web.yaml"
    path.write_text(
        EXPERIMENT.format(repetitions=1)
        .replace("[sptcp-wifi, mptcp]", "[sptcp-wifi]")
        .replace("download: {sizes: [10 kB, 1 MB]}", "web: {sites: [news-1]}")
    )
    process = start_mplab("run", str(path), "--no-report")

    def scenario_runs() -> bool:
        return any('"step": "scenario"' in events.read_text() for events in tmp_path.glob("runs/*/events.jsonl"))

    wait_until(scenario_runs, "the scenario under way")
    for browser in browser_processes():
        browser.kill()
    assert process.wait(120) == 0
    (cell,) = cells(only_run(tmp_path)).values()
    assert cell["outcome"] == "ok"
    assert [attempt["outcome"] for attempt in cell["attempts"]] == ["failed", "ok"]
    assert "browser" in cell["attempts"][0]["reason"]
    directory = only_run(tmp_path) / "cells" / cell["id"]
    for folder in (directory, directory / "attempts" / "1"):
        assert (folder / "phone-wlan0.pcapng").stat().st_size > 0
    assert list(directory.glob("har/*.har"))


def test_sigint_stops_cleanly_and_the_run_can_be_resumed(
    start_mplab: Start, mplab: Mplab, experiment: Callable[..., str], tmp_path: Path
) -> None:
    process = start_mplab("run", experiment(2), "--no-report")
    wait_until(lambda: bool(list(tmp_path.glob("runs/*/cells/*r1/cell.json"))), "first cell")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert lab_processes() == []
    run = only_run(tmp_path)
    complete = set(cells(run))
    assert 0 < len(complete) < 4
    assert json.loads(mplab("status", str(run), "--json").stdout)["state"] == "interrupted"

    left = json.loads(mplab("resume", str(run), "--dry-run", "--json").stdout)["plan"]["cells"]
    planned = json.loads((run / "manifest.json").read_text())["plan"]["cells"]
    assert left == [cell for cell in planned if cell["id"] not in complete], "and nothing was done yet"
    assert mplab("resume", str(run), "--no-report").returncode == 0
    _check_as_planned(run, kept=complete)


def test_a_killed_run_resumed_gives_the_same_plan(
    start_mplab: Start, mplab: Mplab, experiment: Callable[..., str], tmp_path: Path
) -> None:
    before = Traces()
    process = start_mplab("run", experiment(2), "--no-report")
    wait_until(lambda: bool(list(tmp_path.glob("runs/*/cells/000[23]*.partial/scenario.jsonl"))), "a later cell")
    process.kill()
    process.wait(30)
    wait_until(lambda: not lab_processes(), "the end of the lab")
    wait_until(lambda: not Traces().left_since(before), "nothing left")
    run = only_run(tmp_path)
    complete = set(cells(run))
    assert complete
    events = run / "events.jsonl"  # As after a power loss: the cells are on disk, but their events are lost.
    lines = events.read_text().splitlines(keepends=True)
    events.write_text("".join(line for line in lines if '"cell_finished"' not in line))
    assert json.loads(mplab("status", str(run), "--json").stdout)["state"] == "killed"
    assert mplab("resume", str(run), "--no-report").returncode == 0
    _check_as_planned(run, kept=complete)
    assert json.loads(mplab("status", str(run), "--json").stdout)["state"] == "finished"


def _check_as_planned(run: Path, kept: set[str]) -> None:
    """Assert that every planned cell is there once and in order, and that complete cells did not run again."""
    planned = [cell["id"] for cell in json.loads((run / "manifest.json").read_text())["plan"]["cells"]]
    assert list(cells(run)) == planned
    assert not list(run.glob("cells/*.partial"))
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    finished = [event["cell"] for event in events if event["event"] == "cell_finished"]
    assert sorted(finished) == sorted(planned)
    resumed = next(index for index, event in enumerate(events) if event["event"] == "run_resumed")
    assert not kept & {event["cell"] for event in events[resumed:] if event["event"] == "cell_started"}


def test_a_second_run_waits_for_nobody(start_mplab: Start, mplab: Mplab, experiment: Callable[..., str]) -> None:
    start_mplab("run", experiment(2), "--no-report")
    wait_until(lambda: bool(lab_processes()), "the first run's lab")
    result = mplab("run", experiment(), "--no-report")
    assert result.returncode == 3
    assert "is in use" in result.stderr


def test_a_kernel_without_mptcp_runs_the_rest(experiment: Callable[..., str], tmp_path: Path) -> None:
    code = (
        "import sys; from mplab.drivers.transport.mptcp.driver import MptcpDriver;"
        "MptcpDriver.missing_reason = lambda _: 'this kernel has none';"
        "from mplab.cli.main import main; sys.argv = ['mplab', 'plan', sys.argv[1], '--json']; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, experiment()],
        capture_output=True,
        text=True,
        check=True,
        env=environment(tmp_path),
    )
    plan = json.loads(result.stdout)["plan"]
    assert {cell["transport"] for cell in plan["cells"]} == {"sptcp-wifi"}
    assert plan["skipped"] == [{"transport": "mptcp", "reason": "this kernel has none"}]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
def test_a_full_disk_is_one_clear_error(experiment: Callable[..., str], tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    script = (
        f'mount -t tmpfs -o size=600k small "{small}" && "$@"; code=$?; cp -r "{small}" "{tmp_path}/kept"; exit $code'
    )
    result = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", *mplab_argv("run", experiment(2), "--runs", str(small))],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=environment(tmp_path),
    )
    assert result.returncode == 1, result.stderr
    assert result.stderr.count("disk full") == 1, result.stderr
    assert "Traceback" not in result.stderr
    (run,) = (tmp_path / "kept").glob("*tiny*")
    json.loads((run / "manifest.json").read_text())
    for line in (run / "events.jsonl").read_text().splitlines():
        json.loads(line)
    assert lab_processes() == []


def test_a_bad_experiment_touches_nothing(mplab: Mplab, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(EXPERIMENT.format(repetitions=1).replace("mptcp]", "mtcp]"))
    result = mplab("run", str(bad))
    assert result.returncode == 2
    assert "bad.yaml:4" in result.stderr
    assert "mptcp" in result.stderr
    assert not (tmp_path / "runs").exists()


def test_a_run_is_found_by_a_part_of_its_name(mplab: Mplab, tmp_path: Path) -> None:
    assert mplab("status").returncode == 2
    run = tmp_path / "runs" / "20260101T000000Z-tiny-abcdef"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    shutil.copytree(run, run.with_name("20260102T000000Z-tiny-012345"))
    result = mplab("status", "20260103")
    assert result.returncode == 2
    assert "20260102T000000Z-tiny-012345" in result.stderr
