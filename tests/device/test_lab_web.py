"""A run of `web` on an emulated phone: Chrome driven by its DevTools, through stock adb, over the cell's transport."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.places import ROOT
from mplab.base.programs import APPIUM_DIR
from mplab.cell.instruments import read_trace
from mplab.lab.driver import programs_of_lab
from mplab.run.hostside.ready import check_ready
from mplab.userfiles.labs.labuse import use_lab

LAB = ROOT / "router-configs" / "labs" / "emulated-phone.yaml"
EXPERIMENT = f"""\
mplab: 1
name: web-by-adb
lab: {LAB}
transports: [mptcp]
links:
  - name: fast
    wifi: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}}
    lte: {{down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}}
scenarios:
  - web: {{sites: [wiki]}}
tolerance: {{rtt: 90 %, rate: 60 %}}
retries: 3
"""
OBJECTS, BYTES = 28, 601_200
RUN_TIMEOUT_S = 280.0


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the only cell of a run."""
    try:
        check_ready(needs_ui=True, further=programs_of_lab(use_lab(LAB)))
    except LabNotReadyError as error:
        pytest.skip(str(error))
    if not (APPIUM_DIR / "node_modules" / "chrome-har").exists():
        pytest.skip("chrome-har is not installed: make setup")
    folder = tmp_path_factory.mktemp("web-by-adb")
    file, runs = folder / "web-by-adb.yaml", folder / "runs"
    file.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "mplab", "run", str(file), "--runs", str(runs)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = runs.glob("*/cells/*")
    return path


def test_the_browser_itself_says_how_the_page_was_loaded(cell: Path) -> None:
    records = map(json.loads, (cell / "scenario.jsonl").read_text().splitlines())
    (page,) = (record for record in records if record["event"] == "page")
    assert (page["site"], page["seen_by"], page["protocol"]) == ("wiki", "devtools", "h2")
    assert (page["objects"], page["body_bytes"], page["objects_after_load"]) == (OBJECTS, BYTES, 0)
    assert 0 < page["time_to_first_byte_s"] < page["dom_content_loaded_s"] <= page["page_load_time_s"]
    values = {value["metric"]: value["value"] for value in json.loads((cell / "scores.json").read_text())["values"]}
    assert values["page_load_time"] == page["page_load_time_s"]
    assert values["dom_content_loaded"] == page["dom_content_loaded_s"]
    assert "look_resolution" not in values


def test_har_has_every_object(cell: Path) -> None:
    log = json.loads((cell / "har" / "wiki-1.har").read_text())["log"]
    assert len(log["entries"]) == OBJECTS
    assert {entry["response"]["status"] for entry in log["entries"]} == {200}
    assert log["pages"][0]["pageTimings"]["onLoad"] > 0


def test_it_came_over_the_transport(cell: Path) -> None:
    trace = read_trace([cell / "phone-wlan0.pcapng", cell / "phone-rmnet0.pcapng"])
    assert sum(flow["unique_down"] for flow in trace["subflows"]) > BYTES
    assert {flow["interface"] for flow in trace["subflows"] if flow["unique_down"]} == {"wlan0", "rmnet0"}
    agent = map(json.loads, (cell / "logs" / "agent.jsonl").read_text().splitlines())
    assert sum(record.get("bytes_down", 0) for record in agent) > BYTES
