"""Compute how long bytes waited at the receiver for earlier bytes: the reordering delay of nikravesh2016 §3.3."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import polars as pl

from mplab.analysis.record.run import Event
from mplab.analysis.record.tables import ENDS, FOLDER

Direction = Literal["up", "down"]
DIRECTIONS: tuple[Direction, ...] = ("up", "down")

_LOGS: Mapping[Direction, str] = {"down": "logs/agent.jsonl", "up": "logs/proxy.jsonl"}
"""Direction → log of its receiver, which has the waiting times of a session's streams."""


@dataclass(frozen=True)
class Wait:
    """Time from the arrival of a byte until all earlier bytes have arrived; 0 for bytes in order.

    Attributes:
        mean_ms: mean over all bytes.
        p95_ms: 95 % quantile over all bytes. For several connections, the mean of their quantiles, weighted by bytes.
            None if only means are known.
    """

    mean_ms: float
    p95_ms: float | None


def wait_of(tables: Mapping[str, pl.DataFrame], folder: Path, direction: Direction, port: int) -> Wait | None:
    """Return the wait of bytes to or from a port of the servers, at the phone (``down``) or at the proxy (``up``).

    For TCP and MPTCP, the wait comes from the captures of both ends (table ``reordering`` of ``mptrace ends``), at the
    level of MPTCP if the connection has it. For a session (mpflex), two waits are added. The first is the wait within
    the TCP connections of the session's paths, which carry all streams. The second is the wait of the port's streams
    for bytes on another path, from the receiver's log.

    Args:
        tables: ``connections`` of the phone's captures.
        folder: folder of the cell.
        direction: ``up`` or ``down``.
        port: port of the destination behind the proxy.

    Returns:
        None when the captures or the log lack the data.
    """
    path = folder / FOLDER / ENDS / "reordering.parquet"
    if not path.is_file():
        return None
    rows = pl.read_parquet(path).filter(pl.col("direction") == direction)
    own = tables["connections"].filter(pl.col("destination_port") == port)["connection_id"].to_list()
    if own:
        return _weighted(rows.filter(pl.col("connection_id").is_in(own)))
    within = _weighted(rows)
    between = _in_session(folder / _LOGS[direction], direction, port)
    return None if within is None or between is None else Wait(within.mean_ms + between, None)


def _weighted(rows: pl.DataFrame) -> Wait | None:
    """Return the wait over several rows, weighted by the bytes whose wait is known; None without such bytes."""
    rows = rows.drop_nulls("delay_mean_ms").with_columns(known=pl.col("bytes") - pl.col("unknown_bytes"))
    known = int(rows["known"].sum())
    if not known:
        return None
    mean, p95 = ((rows[name] * rows["known"]).sum() / known for name in ("delay_mean_ms", "delay_p95_ms"))
    return Wait(float(mean), float(p95))


def _in_session(log: Path, direction: Direction, port: int) -> float | None:
    """Return the mean wait of the streams to a port, ms, weighted by bytes; None without such streams."""
    streams = [record for record in _records(log) if str(record.get("dst", "")).endswith(f":{port}")]
    weights = [
        (float(record["waited_ms"]), record[f"bytes_{direction}"]) for record in streams if "waited_ms" in record
    ]
    size = sum(weight for _, weight in weights)
    return sum(wait * weight for wait, weight in weights) / size if size else None


def _records(log: Path) -> Iterator[Event]:
    if log.is_file():
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                record = json.loads(line)
            except ValueError:  # the last line was cut off
                continue
            if record.get("event") == "connection":
                yield record
