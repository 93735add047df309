"""Define columns, conditions and joins that several figures use."""

import polars as pl

from mplab.analysis.figures.run_traces import CellTrace

BYTES = (pl.col("bytes_up") + pl.col("bytes_down")).alias("bytes")
LONG_BYTES = 1_000_000
"""Minimum size of a long transfer in baerts2015 (figures 4.8 and 5.5)."""

OPENED = pl.col("syn_seen")
"""The capture has the start of the connection: its duration and size are complete."""

SEVERAL = pl.col("subflows") > 1
MPTCP = pl.col("kind") == "mptcp"
"""Selects Multipath TCP connections."""

APPLICATIONS = "With MPFlex, between application and agent."
"""Text for captions. Each path of a session carries many connections of applications, which are captured only on the
phone's loopback."""

UNIQUE = pl.col("unique_up") + pl.col("unique_down")
"""Unique payload of a subflow in both directions."""

WHOLE_LEVEL = pl.when(MPTCP & ~pl.col("fallback")).then(pl.lit("mptcp")).otherwise(pl.lit("tcp"))
"""The level at which all data of a connection are counted: mptcp, or tcp for plain TCP and after a fallback."""


def as_a_whole(frame: pl.DataFrame, trace: CellTrace) -> pl.DataFrame:
    """Return only the rows whose ``level`` is the `WHOLE_LEVEL` of their connection."""
    levels = trace.tables["connections"].select("connection_id", whole=WHOLE_LEVEL)
    return frame.join(levels, on="connection_id").filter(pl.col("level") == pl.col("whole"))


def with_network(frame: pl.DataFrame, trace: CellTrace) -> pl.DataFrame:
    """Add the column ``network`` to rows of subflows, which have ``connection_id`` and ``subflow_id``."""
    networks = trace.tables["subflows"].select("connection_id", "subflow_id", "network")
    return frame.join(networks, on=["connection_id", "subflow_id"])
