"""A call in the virtual lab: two browsers, coturn, a recording, its scores."""

import json
from pathlib import Path
from typing import Any

import pytest

from mplab.drivers.services import load_service
from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run, skip_when_busy

missing = [program.name for program in load_service("turn").programs if program.find() is None]
pytestmark = pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")

EXPERIMENT = """\
mplab: 1
name: calls
transports: [sptcp-wifi]
scenarios:
  - call: {duration: 10 s}
links:
  - name: near
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 16 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 56 ms}
tolerance: {rtt: 90 %, rate: 60 %}
retries: 2
"""


def test_a_call_is_made_recorded_and_scored(mplab: Mplab, tmp_path: Path) -> None:
    (tmp_path / "calls.yaml").write_text(EXPERIMENT)
    result = mplab("run", str(tmp_path / "calls.yaml"), "--json")
    run = only_run(tmp_path)
    ((name, record),) = cells(run).items()
    skip_when_busy(record)
    assert result.returncode == 0, result.stdout + result.stderr
    folder = run / "cells" / name
    steps = list(record["timings_s"])
    assert steps.index("check") < steps.index("prepare") < steps.index("shape")
    observations = [json.loads(line) for line in (folder / "scenario.jsonl").read_text().splitlines()]
    assert {pair["local"]["relayProtocol"] for pair in _pairs(observations)} == {"tcp"}
    assert {pair[side]["candidateType"] for pair in _pairs(observations) for side in ("local", "remote")} == {"relay"}
    assert [item["call"] for item in observations if item["event"] == "call"] == ["control", "1"]
    for item in observations:
        if item["event"] == "heard":
            assert (folder / item["file"]).stat().st_size > 10 * item["rate_hz"] * 2
    scores = json.loads((folder / "scores.json").read_text())["values"]
    values = {value["metric"]: value["value"] for value in scores}
    assert values["mouth_to_ear"] > 10, "half of a round trip of 20 ms"
    assert values["not_found"] < 50
    assert values["host_stall_worst"] >= 0
    assert set(_only(observations, "stalls")) >= {"phone", "desktop", "host"}
    assert set(_only(observations, "utterance")["stalls_ms"]) == {"phone", "desktop", "host"}
    assert len(_only(observations, "spoken")["clock"]) > 100
    waits = {value["labels"]["direction"] for value in scores if value["metric"] == "reordering_delay"}
    assert waits == {"up", "down"}
    destinations = {connection["dst"] for connection in _records(folder / "logs" / "agent.jsonl", "connection")}
    assert "10.65.102.1:3478" in destinations
    _no_secret_is_left(run)


def _only(observations: list[dict[str, Any]], event: str) -> dict[str, Any]:
    """Return the observation `event` of the measured call."""
    (observation,) = [item for item in observations if item["event"] == event and item["call"] == "1"]
    return observation


def _pairs(observations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    calls = [item for item in observations if item["event"] == "call"]
    return [pair for item in calls for used in item["candidates"].values() for pair in used]


def _records(path: Path, event: str) -> list[dict[str, Any]]:
    return [record for line in path.read_text().splitlines() if (record := json.loads(line))["event"] == event]


def _no_secret_is_left(run: Path) -> None:
    """Assert that no text file of the run has a credential or a session description."""
    for path in run.rglob("*"):
        if path.suffix in {".log", ".json", ".jsonl", ".html", ".yaml"}:
            text = path.read_text(errors="replace")
            assert not [word for word in ("ice-pwd", '"credential"', "user=mplab:") if word in text], path
