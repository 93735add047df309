"""A whole run with an emulated device that is used without root.

The agent runs as the shell's user. Apps reach it by SOCKS or by the HTTP proxy in Android's settings.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.lab.driver import programs_of_lab
from mplab.run.hostside.ready import check_ready
from mplab.userfiles.labs.labuse import use_lab

LAB = """\
mplab: 1
name: without-root
phones:
  phone-1: {driver: emulated, model: android-16, root: none, record_screen: true}
"""
# Every kernel lets the shell's user choose reno.
EXPERIMENT = """\
mplab: 1
name: by-socks
lab: lab.yaml
transports: [sptcp, sptcp-lte, mpflex, mptcp]
congestion_control: reno
links:
  - name: fast
    wifi: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 20 ms}
    lte: {down: 10 Mbit/s, up: 10 Mbit/s, rtt: 30 ms}
scenarios:
  - download: {sizes: [2 MB]}
  - web: {sites: [wiki]}
  - firefox: {sites: [wiki]}
exclude:
  - {scenario: web, transport: sptcp-lte}
  - {scenario: firefox, transport: sptcp}
  - {scenario: firefox, transport: mpflex}
tolerance: {rtt: 90 %, rate: 60 %}
retries: 3
"""
SIZE_BYTES = 2_000_000
PAGE_BYTES = 601_200
RUN_TIMEOUT_S = 550.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a finished run with its report."""
    folder = tmp_path_factory.mktemp("by-socks")
    (folder / "lab.yaml").write_text(LAB)
    try:
        check_ready(needs_ui=True, further=programs_of_lab(use_lab(folder / "lab.yaml")))
    except LabNotReadyError as error:
        pytest.skip(str(error))
    file, runs = folder / "by-socks.yaml", folder / "runs"
    file.write_text(EXPERIMENT)
    command = [sys.executable, "-m", "mplab", "run", str(file), "--runs", str(runs)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    (path,) = runs.iterdir()
    return path


def cells(run: Path, scenario: str = "download") -> dict[str, tuple[Path, dict[str, Any]]]:
    """Return transport → folder and cell.json."""
    all_cells = ((path.parent, json.loads(path.read_text())) for path in run.glob("cells/*/cell.json"))
    return {cell["spec"]["transport"]: (path, cell) for path, cell in all_cells if cell["spec"]["scenario"] == scenario}


def carried(log: Path) -> list[dict[str, Any]]:
    """Return the records of downloads in an agent's or proxy's log."""
    records = map(json.loads, log.read_text().splitlines())
    return [record for record in records if record["event"] == "connection" and record["bytes_down"] > SIZE_BYTES]


def test_every_transport_that_needs_no_root_was_run(run: Path) -> None:
    assert {name: cell["outcome"] for name, (_, cell) in cells(run).items()} == {
        "sptcp": "ok",
        "sptcp-lte": "ok",
        "mpflex": "ok",
    }
    assert {name: cell["outcome"] for name, (_, cell) in cells(run, "web").items()} == {"sptcp": "ok", "mpflex": "ok"}
    assert {name: cell["outcome"] for name, (_, cell) in cells(run, "firefox").items()} == {"sptcp-lte": "ok"}


@pytest.mark.parametrize("scenario", ["web", "firefox"])
def test_pages_came_by_the_agent_alone(run: Path, scenario: str) -> None:
    for name, (path, _) in cells(run, scenario).items():
        agent = [json.loads(line) for line in (path / "logs" / "agent.jsonl").read_text().splitlines()]
        carried = [
            record for record in agent if record["event"] == "connection" and record["src"] and record["bytes_down"]
        ]
        assert sum(record["bytes_down"] for record in carried) > PAGE_BYTES
        assert [record for record in carried if not record.get("domain")] == [], (
            "each came with its name, to the HTTP proxy"
        )
        if name == "mpflex":
            paths = [entry for record in carried for entry in record.get("paths", ())]
            assert {entry["interface"] for entry in paths if entry["bytes_in"]} == {"wlan0", "rmnet0"}
        observations = map(json.loads, (path / "scenario.jsonl").read_text().splitlines())
        (page,) = (observation for observation in observations if observation["event"] == "page")
        assert (page["by_proxy"], page["dns_s"]) == (True, None)
        scored = {value["metric"] for value in json.loads((path / "scores.json").read_text())["values"]}
        assert "page_load_time" in scored
        assert "dns_time" not in scored, "the agent has looked it up"


def test_the_bytes_came_by_agent_and_proxy(run: Path) -> None:
    for name, (path, _) in cells(run).items():
        (agent,) = carried(path / "logs" / "agent.jsonl")
        assert (agent["process"], agent["domain"]) == ("curl", "dl.lab"), "by name, to the SOCKS listener"
        (proxy,) = carried(path / "logs" / "proxy.jsonl")
        assert proxy["src"] == agent["src"]
        if name == "mpflex":
            assert {entry["interface"] for entry in agent["paths"] if entry["bytes_in"]} == {"wlan0", "rmnet0"}
        else:
            assert agent["local"].partition(":")[0] == ("10.64.2.2" if name == "sptcp-lte" else "10.64.1.2")


@pytest.mark.skipif(not shutil.which("ffprobe"), reason="no ffmpeg: the emulated device makes no films")
def test_there_is_a_film_of_each_cell(run: Path) -> None:
    for path, cell in (item for name in ("download", "web") for item in cells(run, name).values()):
        observations = map(json.loads, (path / "scenario.jsonl").read_text().splitlines())
        parts = [observation for observation in observations if observation["event"] == "film"]
        assert [part["file"] for part in parts] == ["film/1.mp4"], cell["warnings"]
        assert all((path / part["file"]).read_bytes()[4:8] == b"ftyp" for part in parts)


def test_a_lookup_that_the_agent_made_is_no_result(run: Path) -> None:
    for path, _ in cells(run).values():
        scored = {value["metric"] for value in json.loads((path / "scores.json").read_text())["values"]}
        known = {"download_time", "goodput", "time_to_first_byte", "wifi_bytes", "cellular_bytes"}
        assert scored - {"copied_share"} == known, "copied_share is that of a session"


def test_what_was_not_controlled_is_said_and_the_proxy_alone_has_captured(run: Path) -> None:
    for _, cell in cells(run).values():
        assert cell["phone"]["root"] == "none"
        assert any("default route" in item for item in cell["phone"]["uncontrolled"])
        assert [capture["file"] for capture in cell["captures"]] == ["proxy.pcapng"]
        assert not any("QUIC" in warning for warning in cell["warnings"])
    summary = json.loads((run / "report" / "summary.json").read_text())
    assert any("phone-1 was used without root. Not controlled: " in text for text in summary["warnings"])
