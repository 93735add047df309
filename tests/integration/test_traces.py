"""Captures of a cell agree with the records of its programs: web objects, both ends, destinations."""

import json
from pathlib import Path

import polars as pl

from tests.integration.conftest import Mplab

EXPERIMENT = """\
mplab: 1
name: objects
transports: [mptcp]
links:
  - name: fast
    wifi: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 20 ms}
    lte: {down: 20 Mbit/s, up: 20 Mbit/s, rtt: 40 ms}
scenarios:
  - web: {sites: [wiki], http: h2}
capture: payload
tolerance: {rtt: 60 %, rate: 50 %}
retries: 2
"""


def test_web_objects_are_those_that_the_browser_saw(mplab: Mplab, tmp_path: Path) -> None:
    path = tmp_path / "objects.yaml"
    path.write_text(EXPERIMENT)
    result = mplab("run", str(path), "--json")
    assert result.returncode == 0, result.stdout + result.stderr
    (cell,) = (tmp_path / "runs").glob("*/cells/0001-*")
    _objects(cell)
    _connections(cell)
    _ends(cell)
    keys = cell / "logs" / "tls-keys.txt"
    assert keys.stat().st_mode & 0o077 == 0


def _objects(cell: Path) -> None:
    """Compare URLs, statuses and sizes with the HAR file; the subflows' bytes are the transferred bytes."""
    (har,) = cell.glob("har/*.har")
    seen = {
        entry["request"]["url"]: (
            entry["response"]["status"],
            entry["response"]["content"]["size"],
            entry["response"]["_transferSize"],
        )
        for entry in json.loads(har.read_text())["log"]["entries"]
    }
    objects = pl.read_parquet(cell / "tables" / "objects.parquet")
    traced = {
        row["url"]: (
            row["status"],
            row["response_body"],
            sum(int(part.partition(":")[2]) for part in row["subflows"].split(",")),
        )
        for row in objects.iter_rows(named=True)
    }
    assert traced == seen
    assert objects["complete"].all()


def _connections(cell: Path) -> None:
    """Check the names from TLS, and the destinations and applications from the agent's log."""
    connections = pl.read_parquet(cell / "tables" / "connections.parquet").filter(pl.col("destination_port") == 443)
    assert connections.height > 0
    assert connections["host"].str.ends_with(".wiki.lab").all()
    assert set(connections["host_source"]) == {"sni"}
    assert connections["application"].str.contains("chrom").all()
    assert "wifi,cellular" in set(connections["networks"])


def _ends(cell: Path) -> None:
    """Check that each way takes half of the emulated round trip, and that both ends had the same clock."""
    paths = pl.read_parquet(cell / "tables" / "ends" / "path_ends.parquet").filter(pl.col("arrived") > 0)
    for interface, delay_ms in (("wlan0", 10.0), ("rmnet0", 20.0)):
        delays = paths.filter(pl.col("interface") == interface)["owd_min_ms"].to_list()
        assert delay_ms - 1 < min(delays) < 2 * delay_ms
    assert json.loads((cell / "tables" / "ends" / "ends.json").read_text())["clock"]["same"] is True
