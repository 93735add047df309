"""Tables of an older mptrace, brought to today's columns as far as they hold them.

Schema 1 had ``connections`` and ``subflows`` alone, with the counts of each direction as columns of ``subflows``.
What it did not count is null. Tables made again from the captures have everything: ``mplab analyze`` does that.
"""

from collections.abc import Callable, Mapping

import polars as pl

from mplab.analysis.record.schema import SCHEMAS

FIRST = 1
"""The oldest schema that can be read."""

Old = Callable[[str], pl.DataFrame]
"""Gives a table of the old schema by name, as it is on disk."""

NETWORKS = {"wlan": "wifi", "rmnet": "cellular", "lo": "loopback"}
"""Networks by the beginning of an interface's name, as mptrace guesses them."""


def upgrade(name: str, old: Old) -> pl.DataFrame:
    """A table of schema 1 with the columns of today; tables that schema 1 did not have are empty."""
    made = {"connections": _connections, "subflows": _subflows, "directions": _directions}.get(name)
    return conform(name, made(old) if made else pl.DataFrame())


def conform(name: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The columns of table ``name`` in their order and with their types; null where ``frame`` lacks one."""
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
