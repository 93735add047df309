"""A whole run in a lab whose phone is an emulated device, used through stock adb."""

import contextlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.places import ROOT
from mplab.cell.instruments import read_trace
from mplab.lab.driver import programs_of_lab
from mplab.run.hostside.ready import check_ready
from mplab.userfiles.labs.labuse import use_lab
from tests.device.conftest import wait_until

LAB = ROOT / "router-configs" / "labs" / "emulated-phone.yaml"
EXPERIMENT = f"""\
mplab: 1
name: by-adb
lab: {LAB}
transports: [sptcp-wifi, mptcp]
links:
  - name: fast
    wifi: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}}
    lte: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}}
scenarios:
  - download: {{sizes: [2 MB]}}
  - dropbox: {{files: 1, size: 2 MB, block: 2 MB}}
tolerance: {{rtt: 90 %, rate: 60 %}}
retries: 3
"""
CAPTURES = {"phone-wlan0.pcapng", "phone-rmnet0.pcapng", "phone-lo.pcapng", "proxy.pcapng"}
RUN_TIMEOUT_S = 550.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished run."""
    try:
        check_ready(needs_ui=False, further=programs_of_lab(use_lab(LAB)))
    except LabNotReadyError as error:
        pytest.skip(str(error))
    folder = tmp_path_factory.mktemp("by-adb")
    file, runs = folder / "by-adb.yaml", folder / "runs"
    file.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "mplab", "run", str(file), "--runs", str(runs), "--no-report"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = runs.iterdir()
    return path


def cells(run: Path, **wanted: str) -> dict[Path, dict[str, Any]]:
    """Return folder → cell.json of the cells with this scenario or transport."""
    all_cells = {path.parent: json.loads(path.read_text()) for path in sorted(run.glob("cells/*/cell.json"))}
    return {path: cell for path, cell in all_cells.items() if wanted.items() <= cell["spec"].items()}


def observed(cell: Path, event: str) -> list[dict[str, Any]]:
    records = map(json.loads, (cell / "scenario.jsonl").read_text().splitlines())
    return [record for record in records if record["event"] == event]


def test_every_cell_is_ok_with_its_captures(run: Path) -> None:
    by_folder = cells(run)
    assert len(by_folder) == 4
    for path, cell in by_folder.items():
        assert cell["outcome"] == "ok", cell["reasons"]
        assert {capture["file"] for capture in cell["captures"]} == CAPTURES
        assert all((path / name).stat().st_size for name in CAPTURES)
        assert {capture["node"] for capture in cell["captures"]} == {"phone-1", "proxy"}


def test_mptcp_had_subflows_on_both_interfaces(run: Path) -> None:
    for path in cells(run, transport="mptcp"):
        trace = read_trace([path / "phone-wlan0.pcapng", path / "phone-rmnet0.pcapng"])
        carried = {flow["interface"] for flow in trace["subflows"] if flow["unique_up"] + flow["unique_down"] > 100_000}
        assert carried == {"wlan0", "rmnet0"}, path


def test_one_path_was_wifi_alone(run: Path) -> None:
    for path, cell in cells(run, transport="sptcp-wifi").items():
        trace = read_trace([path / "phone-wlan0.pcapng", path / "phone-rmnet0.pcapng"])
        assert {flow["interface"] for flow in trace["subflows"]} == {"wlan0"}
        assert all(row["kind"] == "tcp" for row in trace["connections"])
        assert cell["proof"]["active"]["local"] == ["10.64.1.2"]


def test_the_apps_upload_came_over_the_transport(run: Path) -> None:
    for path, cell in cells(run, scenario="dropbox").items():
        (upload,) = observed(path, "upload")
        assert (upload["state"], upload["size_bytes"]) == ("done", 2_000_000)
        assert cell["phone"]["app"] == "com.dropbox.android"
        assert cell["phone"]["app_version"]
        agent = map(json.loads, (path / "logs" / "agent.jsonl").read_text().splitlines())
        assert sum(record.get("bytes_up", 0) for record in agent) > 2_000_000


def test_what_the_phone_was_is_recorded(run: Path) -> None:
    for path, cell in cells(run).items():
        assert cell["phone"]["model"] == "Google Pixel 7"
        assert cell["phone"]["os"].startswith("Android 13")
        assert cell["phone"]["root"] == "su -c"
        assert abs(cell["clock_offset_ms"]) <= 1000, "both clocks are this machine's"
        assert float(cell["phone"]["clock_uncertainty_ms"]) > 0
        assert (path / "logs" / "logcat.txt").exists()
    (up,) = (json.loads(line) for line in (run / "events.jsonl").read_text().splitlines() if '"lab_up"' in line)
    assert up["phone"]["serial"] == "EMU13A0001"


@pytest.mark.usefixtures("run")
def test_by_hand(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mplab", "lab", "up", "--lab", str(LAB), "--transport", "mptcp", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    facts = json.loads(result.stdout)
    assert facts["problems"] == []
    assert sorted(facts["active"]["local"]) == ["10.64.1.2", "10.64.2.2"]
    assert (facts["phone"]["name"], facts["phone"]["root"]) == ("phone-1", "su -c")


SLOW = f"""\
mplab: 1
name: lost
lab: {LAB}
transports: [sptcp-wifi]
links:
  - name: slow
    wifi: {{down: 1 Mbit/s, up: 1 Mbit/s, rtt: 20 ms}}
    lte: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}}
scenarios:
  - download: {{sizes: [1 MB]}}
tolerance: {{rtt: 90 %, rate: 60 %}}
retries: 4
"""


def events(runs: Path) -> list[dict[str, Any]]:
    text = "".join(file.read_text() for file in runs.glob("*/events.jsonl"))
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def device_process(run: subprocess.Popen[str]) -> int:
    """Return the process of a run's emulated device, as seen from this process."""
    for process in psutil.Process(run.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.cmdline()[1:3] == ["-m", "mplab.device"]:
                return process.pid
    raise AssertionError("no device runs")


@pytest.mark.usefixtures("run")
def test_a_phone_that_reboots_in_a_cell_costs_an_attempt(tmp_path: Path) -> None:
    file, runs = tmp_path / "lost.yaml", tmp_path / "runs"
    file.write_text(SLOW)
    mplab = [sys.executable, "-m", "mplab"]
    command = [*mplab, "run", str(file), "--runs", str(runs), "--no-report"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            wait_until(lambda: any(event.get("step") == "scenario" for event in events(runs)), "the scenario runs", 180)
            network = ["nsenter", "--target", str(device_process(running)), "--net", "--"]
            fault = [*mplab, "lab", "device", "fault", "reboot", "seconds=3"]
            subprocess.run([*network, *fault], check=True, timeout=30)
            output, _ = running.communicate(timeout=RUN_TIMEOUT_S)
        finally:
            running.kill()
    assert running.returncode == 0, output
    happened = events(runs)
    assert [event["event"] for event in happened if event["event"] in {"phone_recovered", "cell_retried"}][:2] == [
        "phone_recovered",
        "cell_retried",
    ]
    first = next(event for event in happened if event["event"] == "cell_retried")
    assert "phone-1 (127.0.0.1:" in first["reason"], "the phone is named, with its serial"
    (cell,) = cells(next(runs.iterdir())).values()
    assert cell["outcome"] == "ok"
