"""Convert tables of an older mptrace to the present columns.

Schema 1 had only ``connections`` and ``subflows``, with the counts of each direction as columns of ``subflows``.
Columns that schema 1 lacked are null. To fill them, make the tables again from the captures with ``mplab analyze``.
"""

from collections.abc import Callable, Mapping

import polars as pl

from mplab.analysis.record.schema import SCHEMAS

FIRST = 1
"""The oldest schema that can be read."""

Old = Callable[[str], pl.DataFrame]
"""Reads a table of the old schema by its name."""

NETWORKS = {"wlan": "wifi", "rmnet": "cellular", "lo": "loopback"}
"""Prefix of an interface's name → network, as mptrace guesses it."""


def upgrade(name: str, old: Old) -> pl.DataFrame:
    """Return a table of schema 1 with the present columns; tables that schema 1 lacked are empty."""
    made = {"connections": _connections, "subflows": _subflows, "directions": _directions}.get(name)
    return conform(name, made(old) if made else pl.DataFrame())


def conform(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Return ``frame`` with exactly the columns of table ``name``, in order and typed; missing ones are null."""
    schema = SCHEMAS[name]
    if not frame.columns:
        return pl.DataFrame(schema=schema)
    return frame.select(
        (pl.col(column) if column in frame.columns else pl.lit(None)).cast(dtype).alias(column)
        for column, dtype in schema.items()
    )


def _connections(old: Old) -> pl.DataFrame:
    frame = old("connections")
    networks = _networks(pl.element())
    return frame.with_columns(
        join_delay_ms=pl.lit(None, pl.Float64),
        networks=pl.col("interfaces").str.split(",").list.eval(networks).list.join(","),
    )


def _subflows(old: Old) -> pl.DataFrame:
    carried = (pl.col("payload_up") + pl.col("payload_down")) > 0
    return old("subflows").with_columns(used=carried, network=_networks(pl.col("interface")))


def _networks(interface: pl.Expr) -> pl.Expr:
    found = pl.lit("")
    for prefix, network in NETWORKS.items():
        found = pl.when(interface.str.starts_with(prefix)).then(pl.lit(network)).otherwise(found)
    return found


def _directions(old: Old) -> pl.DataFrame:
    subflows = old("subflows")
    return pl.concat([_direction(subflows, way) for way in ("up", "down")]).sort(
        "connection_id", "subflow_id", maintain_order=True
    )


def _direction(subflows: pl.DataFrame, way: str) -> pl.DataFrame:
    counts: Mapping[str, str] = {
        "segments": "segments",
        "bytes": "payload",
        "unique_bytes": "unique",
        "retransmitted_segments": "retransmitted_segments",
        "retransmitted_bytes": "retransmitted_bytes",
    }
    return subflows.select(
        "connection_id",
        "subflow_id",
        pl.lit("tcp").alias("level"),
        pl.lit(way).alias("direction"),
        *(pl.col(f"{old}_{way}").alias(new) for new, old in counts.items()),
    )
