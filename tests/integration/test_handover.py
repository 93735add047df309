"""Scheduled changes reach the phone in the lab, transports react to them, and each cell undoes its own changes."""

import json
from pathlib import Path
from typing import Any

from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

HEAD = """\
mplab: 1
name: handover
links:
  - name: gap
    wifi: {down: 4 Mbit/s, up: 2 Mbit/s, rtt: 30 ms}
    lte: {down: 4 Mbit/s, up: 2 Mbit/s, rtt: 50 ms}
    changes:
"""
DOWN_AND_UP = """\
      - {at: 1500 ms, path: wifi, interface: down}
      - {at: 3500 ms, path: wifi, interface: up}
"""
EVERYTHING = """\
      - {at: 500 ms, path: wifi, radio: off}
      - {at: 1500 ms, path: wifi, access_point: new, gone: 500 ms, rtt: 40 ms}
      - {at: 2500 ms, path: lte, interface: down}
      - {at: 3500 ms, path: lte, interface: up}
      - {at: 3700 ms, path: lte, route: default}
      - {at: 3800 ms, over: 200 ms, steps: 2, path: wifi, loss: 1 %}
      - {at: 3900 ms, path: wifi, multipath: backup}
"""
LONG_FLOW = "{sizes: [4 MB]}"
SHORT_FLOWS = "{sizes: [], bundles: [{flows: 6, size: 10 kB, every: 1 s}]}"
TAIL = """\
tolerance: {rtt: 60 %, rate: 50 %}
"""


def run_cells(
    mplab: Mplab, tmp_path: Path, changes: str, transports: str, retries: int, *, download: str = LONG_FLOW
) -> dict[str, dict[str, Any]]:
    """Run the cells and return them by transport, each with its observations under ``observed``."""
    path = tmp_path / "handover.yaml"
    scenarios = f"scenarios: [{{download: {download}}}]"
    path.write_text(f"{HEAD}{changes}{TAIL}{scenarios}\ntransports: [{transports}]\nretries: {retries}\n")
    result = mplab("run", str(path), "--no-report")
    assert result.returncode in {0, 1}, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_id = cells(run)
    for identity, cell in by_id.items():
        lines = (run / "cells" / identity / "scenario.jsonl").read_text().splitlines()
        cell["observed"] = [json.loads(line) for line in lines]
    return {cell["spec"]["transport"]: cell for cell in by_id.values()}


def changes_of(cell: dict[str, Any]) -> list[dict[str, Any]]:
    return [entry for entry in cell["observed"] if entry["event"] == "change"]


def test_a_download_while_wifi_is_gone(mplab: Mplab, tmp_path: Path) -> None:
    by_transport = run_cells(mplab, tmp_path, DOWN_AND_UP, "mptcp, mpflex", retries=2)
    for name, cell in by_transport.items():
        assert cell["outcome"] == "ok", (name, cell["reasons"])
        assert [(c["what"], c["outage"]) for c in changes_of(cell)] == [
            ("interface down", "begins"),
            ("interface up", "ends"),
        ]
        flows = cell["proof"]["subflows"]
        assert all(flows[device]["bytes_down"] > 100_000 for device in ("wlan0", "rmnet0"))
        assert flows["wlan0"]["established"] > flows["rmnet0"]["established"] > 0, "WiFi was used again"
    events = [e["what"] for e in by_transport["mpflex"]["proof"]["session"]["events"] if e["interface"] == "wlan0"]
    # An attempt can fail while the interface is up but its route is not there yet.
    assert [event for event in events if event != "failed"] == ["attached", "ended", "attached"]


def test_a_single_path_ends_with_its_interface(mplab: Mplab, tmp_path: Path) -> None:
    """Expect two failed attempts. WiFi is up for the second one, although the first one ended while it was down."""
    (cell,) = run_cells(mplab, tmp_path, DOWN_AND_UP, "sptcp-wifi", retries=1).values()
    assert cell["outcome"] == "failed"
    assert len(cell["attempts"]) == 2
    assert all("download of 4 MB: curl failed" in attempt["reason"] for attempt in cell["attempts"])
    assert [c["what"] for c in changes_of(cell)] == ["interface down"], "the rest did not happen any more"


def test_the_default_route_is_cellular_while_wifi_is_gone(mplab: Mplab, tmp_path: Path) -> None:
    """Use short flows, each a new connection. Losing WiFi breaks an open flow; the cell is then tried again."""
    (cell,) = run_cells(mplab, tmp_path, DOWN_AND_UP, "sptcp", retries=2, download=SHORT_FLOWS).values()
    assert cell["outcome"] == "ok", cell["reasons"]
    gone, back = (change["begun"] for change in changes_of(cell))
    (agent,) = only_run(tmp_path).glob("cells/*/logs/agent.jsonl")
    flows = [record for line in agent.read_text().splitlines() if (record := json.loads(line))["event"] == "connection"]
    addresses = {
        when: {flow["local"].partition(":")[0] for flow in flows if begin < flow["opened"] < end}
        for when, begin, end in (("before", 0, gone), ("gone", gone + 0.1, back), ("after", back + 0.1, float("inf")))
    }
    assert addresses == {"before": {"10.64.1.2"}, "gone": {"10.64.2.2"}, "after": {"10.64.1.2"}}


def test_after_a_cell_the_phone_is_as_before(mplab: Mplab, tmp_path: Path) -> None:
    """Run three cells, MPFlex first. If a cell left the phone changed, the link probe of the next cell would fail."""
    transports = "mptcp, mpflex, {mptcp: {label: again}}"
    by_transport = run_cells(mplab, tmp_path, EVERYTHING, transports, retries=2)
    assert next(iter(by_transport)) == "mpflex", "choose another seed"
    assert {name: cell["outcome"] for name, cell in by_transport.items()} == dict.fromkeys(by_transport, "ok")
    assert len(by_transport) == 3
    for transport, cell in by_transport.items():
        outages = [(c["interface"], c["what"], c["outage"]) for c in changes_of(cell) if "outage" in c]
        assert outages == [
            ("wlan0", "radio off", "begins"),
            ("wlan0", "new access point, rtt 40 ms", "ends"),
            ("rmnet0", "interface down", "begins"),
            ("rmnet0", "interface up", "ends"),
        ]
        (multipath,) = [c for c in changes_of(cell) if c["what"] == "multipath backup"]
        assert ("no_effect" in multipath) is (transport == "mpflex")
