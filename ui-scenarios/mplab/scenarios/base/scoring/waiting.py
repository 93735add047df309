"""Compute the reordering delay (nikravesh2016 §3.3): how long bytes waited at the receiver for earlier bytes."""

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
"""Direction → path in the cell's folder of the receiver's log, which has the waiting times of mpflex streams."""


@dataclass(frozen=True)
class Wait:
    """Reordering delay: the time from the arrival of a byte until all earlier bytes have arrived; 0 for bytes in order.

    Attributes:
        mean_ms: mean over all bytes, ms.
        p95_ms: 95 % quantile over all bytes, ms; for several connections, the mean of their quantiles weighted by
            bytes. None if only means are known.
    """

    mean_ms: float
    p95_ms: float | None


def wait_of(tables: Mapping[str, pl.DataFrame], folder: Path, direction: Direction, port: int) -> Wait | None:
    """Return the reordering delay of a cell's traffic with one server port; None if it is unknown.

    For TCP and MPTCP, the delay comes from the captures of both ends (table ``reordering`` of ``mptrace ends``). For an
    MPTCP connection it is the delay in its data sequence, not in its subflows. For a session of mpflex, it is the
    sum of two mean delays: the delay within the TCP connections of the paths, which carry the streams of all ports,
    plus the delay of this port's streams while they wait for bytes on another path (from the receiver's log).

    Args:
        tables: table ``connections`` of the phone's captures.
        folder: folder of the cell.
        direction: ``up``: the delay at the proxy; ``down``: the delay at the phone.
        port: TCP port of the origin's server.
    """
    path = folder / FOLDER / ENDS / "reordering.parquet"
    if not path.is_file():
        return None
    rows = pl.read_parquet(path).filter(pl.col("direction") == direction)
    own = (
        tables["connections"]
        .filter((pl.col("destination_port") == port) | (pl.col("server_port") == port))["connection_id"]
        .to_list()
    )
    if own:
        return _weighted(rows.filter(pl.col("connection_id").is_in(own)))
    within = _weighted(rows)
    between = _in_session(folder / _LOGS[direction], direction, port)
    return None if within is None or between is None else Wait(within.mean_ms + between, None)


def _weighted(rows: pl.DataFrame) -> Wait | None:
    """Return the delay of all rows of the table ``reordering``, weighted by the bytes whose delay is known.

    None if no delay is known.
    """
    rows = rows.drop_nulls("delay_mean_ms").with_columns(known=pl.col("bytes") - pl.col("unknown_bytes"))
    known = int(rows["known"].sum())
    if not known:
        return None
    mean, p95 = ((rows[name] * rows["known"]).sum() / known for name in ("delay_mean_ms", "delay_p95_ms"))
    return Wait(float(mean), float(p95))


def _in_session(log: Path, direction: Direction, port: int) -> float | None:
    """Return the mean time, ms, that bytes of mpflex streams of a server port waited for earlier bytes of the stream.

    The mean is over all streams in the log, weighted by their bytes; None without such streams.

    Args:
        log: log of the end that received the bytes: proxy (``up``) or agent (``down``).
        direction: direction of the bytes: ``up`` or ``down``.
        port: TCP port of the server.
    """
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
