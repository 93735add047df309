"""Cells on the direct route: the applications' sockets use the transport to the origin, next to cells by the proxy."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mplab.base.programs import MPTCPIZE
from tests.integration.conftest import Mplab
from tests.integration.test_run import only_run, skip_when_busy

EXPERIMENT = """\
mplab: 1
name: direct
transports:
  - sptcp-wifi: {via: direct}
  - mptcp: {via: direct}
  - mptcp: {label: mptcp-by-proxy}
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 10 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
scenarios:
  - download: {sizes: [1 MB]}
  - web: {sites: [search]}
exclude:
  - {scenario: web, transport: [sptcp-wifi, mptcp-by-proxy]}
tolerance: {rtt: 60 %, rate: 50 %}
retries: 2
"""


@pytest.mark.skipif(MPTCPIZE.find() is None, reason=f"mptcpize is missing: {MPTCPIZE.remedy}")
def test_files_and_pages_reach_the_origin_over_the_requested_transport(mplab: Mplab, tmp_path: Path) -> None:
    file = tmp_path / "direct.yaml"
    file.write_text(EXPERIMENT)
    result = mplab("run", str(file), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    run = only_run(tmp_path)
    records = {
        (record["spec"]["scenario"], record["spec"]["transport"]): (path.parent, record)
        for path in run.glob("cells/*/cell.json")
        if (record := json.loads(path.read_text()))
    }
    for _, record in records.values():
        skip_when_busy(record)
        assert record["outcome"] == "ok", record["reasons"]
    _check_by_proxy(*records.pop(("download", "mptcp-by-proxy")))
    for (_, transport), (folder, record) in records.items():
        _check_direct(folder, record, multipath=transport == "mptcp")
    page = (run / "report" / "index.html").read_text()
    assert "Multipath TCP, direct" in page
    routes = {
        use["label"]: use["route"]
        for use in json.loads((run / "manifest.json").read_text())["experiment"]["transports"]
    }
    assert "ends at the origin" in routes["mptcp"]
    assert "ends at the proxy" in routes["mptcp-by-proxy"]


def _check_direct(folder: Path, record: dict[str, Any], *, multipath: bool) -> None:
    """The captures of both ends have the same connections, from the phone's addresses to the origin's."""
    assert not (folder / "logs" / "agent.jsonl").exists()
    assert not (folder / "proxy.pcapng").exists()
    assert record["proof"]["active"]["via"] == "direct"
    used = record["congestion_control"]
    assert used["agent"] == used["origin"] == "cubic"
    counters = record["proof"]["origin_counters"]
    assert bool(counters.get("MPTcpExt.MPCapableACKRX")) == multipath
    phone, origin = (pl.read_parquet(folder / "tables" / place / "subflows.parquet") for place in ("", "proxy"))
    ends = ["client", "client_port", "server", "server_port"]
    established = [frame.filter("established").select(ends).sort(ends).rows() for frame in (phone, origin)]
    assert established[0] == established[1] != []
    assert all(server.startswith("10.65.") for _, _, server, _ in established[0])
    clients = {client for client, *_ in established[0]}
    assert clients == ({"10.64.1.2", "10.64.2.2"} if multipath else {"10.64.1.2"})


def _check_by_proxy(folder: Path, record: dict[str, Any]) -> None:
    """The transport ends at the proxy, although the origin's servers accept Multipath TCP in this run."""
    assert (folder / "proxy.pcapng").is_file()
    assert not (folder / "origin.pcapng").exists()
    assert record["proof"]["origin_counters"] == {}
    subflows = pl.read_parquet(folder / "tables" / "subflows.parquet")
    assert set(subflows["server"]) == {"10.64.3.2"}
