"""Convert mptrace's tables to records: one per subflow, or one per Multipath TCP connection."""

from collections.abc import Mapping

import polars as pl

from mplab.analysis.crosscheck.model import Endpoint, FlowRecord, Sides
from mplab.analysis.record.tables import Row

NS = 1e9


def subflow_records(tables: Mapping[str, pl.DataFrame]) -> list[FlowRecord]:
    """Return a record per subflow: ``sides`` has columns of ``directions`` (level tcp), ``whole`` of ``subflows``."""
    found = _directions(tables["directions"], "tcp")
    return [
        _record(row, found.get((row["connection_id"], row["subflow_id"]), {}))
        for row in tables["subflows"].iter_rows(named=True)
    ]


def connection_records(tables: Mapping[str, pl.DataFrame]) -> list[FlowRecord]:
    """Return a record per connection of kind mptcp that did not fall back, with the ends of its first subflow."""
    frame = tables["connections"].filter((pl.col("kind") == "mptcp") & ~pl.col("fallback").fill_null(value=False))
    found = _directions(tables["directions"], "mptcp")
    records = []
    for row in frame.iter_rows(named=True):
        sides = dict(found.get((row["connection_id"], -1), {}))
        sides["mptcp_bytes"] = (row["bytes_up"], row["bytes_down"])
        sides["mptcp_reinjected"] = (row["reinjected_up"], row["reinjected_down"])
        records.append(_record(row, sides))
    return records


def _record(row: Row, sides: Mapping[str, Sides]) -> FlowRecord:
    client: Endpoint = (row["client"], row["client_port"])
    server: Endpoint = (row["server"], row["server_port"])
    return FlowRecord(client, server, row["start_ns"] / NS, sides, row)


def _directions(frame: pl.DataFrame, level: str) -> dict[tuple[int, int], dict[str, Sides]]:
    """Return (connection, subflow) → column → (value up, value down), with the columns that `_with_times` adds."""
    rows: dict[tuple[int, int], dict[str, Row]] = {}
    for row in frame.filter(pl.col("level") == level).iter_rows(named=True):
        rows.setdefault((row["connection_id"], row["subflow_id"]), {})[row["direction"]] = _with_times(row)
    return {
        key: {
            name: (both.get("up", {}).get(name), both.get("down", {}).get(name)) for name in next(iter(both.values()))
        }
        for key, both in rows.items()
    }


def _with_times(row: Row) -> Row:
    """Add ``payload_s`` (from the first to the last payload, s), and sums of counts that other tools do not separate.

    ``below_segments`` are hole and reordered segments; ``again_segments`` also include retransmitted ones.
    """
    first, last = row["first_payload_ns"], row["last_payload_ns"]
    low = _sum(row["hole_segments"], row["reordered_segments"])
    return {
        **row,
        "payload_s": (last - first) / NS if first is not None and last is not None else None,
        "below_segments": low,
        "again_segments": _sum(low, row["retransmitted_segments"]),
    }


def _sum(a: int | None, b: int | None) -> int | None:
    return a + b if a is not None and b is not None else None
