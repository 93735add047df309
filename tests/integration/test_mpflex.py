"""MPFlex in the virtual lab: cells over both interfaces, schedulers that differ, and their report."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

EXPERIMENT = """\
mplab: 1
name: flex
transports:
  - sptcp-wifi
  - mpflex
  - mpflex:minrtt: {plain: true, reinjection: []}
  - mpflex:backup: {primary: lte}
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 30 ms}
scenarios:
  - download: {sizes: [10 kB, 1 MB]}
tolerance: {rtt: 60 %, rate: 50 %}
retries: 2
"""


def test_cells_over_both_interfaces(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "flex.yaml"
    path.write_text(EXPERIMENT)
    result = mplab("run", str(path), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    by_transport = {cell["spec"]["transport"]: cell for cell in cells(run).values()}
    for label in ("mpflex", "mpflex-minrtt", "mpflex-backup"):
        _check_paths(run / "cells" / by_transport[label]["id"], by_transport[label])
    assert by_transport["mpflex-minrtt"]["proof"]["active"]["plain"] is True
    assert "plain" not in by_transport["mpflex"]["proof"]["active"]
    _check_carried(by_transport)
    assert by_transport["sptcp-wifi"]["proof"]["session"] == {}

    options = {t["label"]: t for t in json.loads((run / "manifest.json").read_text())["experiment"]["transports"]}
    assert options["mpflex-minrtt"]["options"] == {
        "scheduler": "minrtt",
        "primary": None,
        "plain": True,
        "reinjection": [],
        "policy": None,
        "feeding": "late",
        "send_buffer": None,
    }
    shares = json.loads((run / "report" / "summary.json").read_text())["interfaces"]
    both = {row["interface"]: row["share"] for row in shares if row["transport"] == "mpflex"}
    assert set(both) == {"wlan0", "rmnet0"}
    assert min(both.values()) > 0.1


def _check_paths(cell: Path, record: dict[str, Any]) -> None:
    """Assert that each interface has one path, and that the phone has no other connection to the proxy."""
    assert record["outcome"] == "ok"
    assert record["congestion_control"]["agent"] == record["congestion_control"]["proxy"] == "cubic"
    assert {(e["interface"], e["what"]) for e in record["proof"]["session"]["events"]} == {
        ("wlan0", "attached"),
        ("rmnet0", "attached"),
    }
    connections = pl.read_parquet(cell / "tables" / "connections.parquet").filter(pl.col("syn_seen"))
    assert sorted(connections["interfaces"]) == ["rmnet0", "wlan0"]
    plain = record["proof"]["active"].get("plain", False)
    assert set(connections["server_port"]) == {7004 if plain else 7003}
    observations = [json.loads(line) for line in (cell / "scenario.jsonl").read_text().splitlines()]
    assert {o["size_bytes"] for o in observations if o["event"] == "download"} == {10_000, 1_000_000}


def _check_carried(found: dict[str, Any]) -> None:
    """Assert that the proxy, which sends, uses the schedulers and switches of the experiment."""
    carried = {label: cell["proof"]["session"]["paths"] for label, cell in found.items() if "mpflex" in label}
    for label in ("mpflex", "mpflex-minrtt"):
        assert set(carried[label]) == {"wlan0", "rmnet0"}
        assert all(path["bytes_down"] > 100_000 for path in carried[label].values())
        assert sum(path["bytes_down"] for path in carried[label].values()) == pytest.approx(1_010_000, rel=0.01)
    assert all(path["copied_down"] == 0 for path in carried["mpflex-minrtt"].values()), "reinjection is off"
    assert set(carried["mpflex-backup"]) == {"rmnet0"}
