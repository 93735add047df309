"""Congestion control, receive buffers, queues and middleboxes act on the cells for which they are requested."""

import json
import subprocess
from pathlib import Path
from typing import Any

from mplab.base.programs import MPTRACE
from tests.integration.conftest import Mplab
from tests.integration.test_run import cells, only_run

TRANSPORTS = """\
mplab: 1
name: sockets
transports:
  - sptcp-wifi
  - sptcp-wifi: {congestion_control: reno, receive_buffer: 64 KiB, label: small}
  - mptcp
  - mptcp: {primary: lte, label: lte-first}
  - mpflex: {congestion_control: reno}
links:
  - name: stripped
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 40 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 50 ms, middlebox: strip-mptcp}
tolerance: {rtt: 60 %, rate: 50 %}
scenarios:
  - download: {sizes: [2 MB]}
"""
BUFFER = 64 << 10


def traced(cell: Path, table: str, *captures: str) -> list[dict[str, Any]]:
    """Return a table of mptrace about captures of a cell; without `captures`, of the phone's interfaces."""
    names = captures or [f"phone-{interface}.pcapng" for interface in ("wlan0", "rmnet0")]
    files = [str(path) for name in names if (path := cell / name).exists()]
    argv = [str(MPTRACE.path()), *files, "--json", "--tables", table]
    rows: list[dict[str, Any]] = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)[table]
    return rows


def test_sockets_and_middleboxes_of_each_transport(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "sockets.yaml"
    file.write_text(TRANSPORTS)
    result = mplab("run", str(file), "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    records = {record["spec"]["transport"]: record for record in cells(run).values()}
    folders = {label: run / "cells" / record["id"] for label, record in records.items()}
    active = {label: record["proof"]["active"] for label, record in records.items()}

    used = {label: record["congestion_control"] for label, record in records.items()}
    for label, algorithm in (("sptcp-wifi", "cubic"), ("small", "reno"), ("mptcp", "cubic"), ("mpflex", "reno")):
        assert used[label]["agent"] == used[label]["proxy"] == algorithm
    assert used["small"]["origin"] == "reno"

    windows = {
        label: max(row["window_max"] or 0 for row in traced(folders[label], "directions") if row["direction"] == "up")
        for label in ("small", "sptcp-wifi")
    }
    assert active["small"]["receive_buffer_bytes"] <= BUFFER < active["sptcp-wifi"]["receive_buffer_bytes"]
    assert 0 < windows["small"] <= BUFFER < windows["sptcp-wifi"]
    (flow,) = [row for row in traced(folders["small"], "connections") if row["bytes_down"] > 2_000_000]
    assert flow["bytes_down"] / flow["duration_s"] <= BUFFER / 0.04, "at most one window in each round trip"

    counters = {label: record["proof"]["counters"] for label, record in records.items()}
    subflows = {label: record["proof"]["subflows"] for label, record in records.items()}
    assert (active["mptcp"]["mptcp"], active["mptcp"]["subflows"]) == (True, 1)
    assert counters["mptcp"]["MPTcpExt.MPJoinSynTx"] > 0
    assert subflows["mptcp"]["rmnet0"]["established"] == 0
    assert not active["lte-first"]["mptcp"]
    assert counters["lte-first"]["MPTcpExt.MPCapableFallbackSYNACK"] > 0
    causes = {row["fallback_cause"] for row in traced(folders["lte-first"], "connections") if row["kind"] == "mptcp"}
    assert causes == {"handshake"}
    assert all(flow["bytes_down"] > 0 for flow in subflows["mpflex"].values())
    after = json.loads((folders["mptcp"] / "counters" / "links-after.json").read_text())
    assert after["rmnet0.up.stripped"] > 0 == after["wlan0.up.stripped"]


QUEUES = """\
mplab: 1
name: queues
transports: [sptcp-wifi]
links:
  - name: slow
    wifi: {down: 4 Mbit/s, up: 4 Mbit/s, rtt: 20 ms}
    lte: {down: 4 Mbit/s, up: 4 Mbit/s, rtt: 20 ms}
queues: [20 packets, 150 kB]
tolerance: {rtt: 60 %, rate: 50 %}
scenarios:
  - download: {sizes: [1 MB]}
"""


def test_a_queue_bounds_the_round_trip(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text(QUEUES)
    result = mplab("run", str(file), "--no-report")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    median_ms = {
        record["spec"]["link"]: max(
            row["rtt_p50_ms"] or 0 for row in traced(run / "cells" / name, "directions", "proxy.pcapng")
        )
        for name, record in cells(run).items()
    }
    full_ms = 20 * 1500 * 8 / 4000
    most_ms = 20 + 21 / 20 * full_ms + 10
    assert 20 + full_ms / 2 < median_ms["slow-q20"] <= most_ms < median_ms["slow-q150kb"]
