"""Columns and conditions that several figures use."""

import polars as pl

KEY = ("cell", "connection_id")
BYTES = (pl.col("bytes_up") + pl.col("bytes_down")).alias("bytes")
LONG_BYTES = 1_000_000
"""Connections with so much are long transfers for baerts2015 (figures 4.8 and 5.5)."""

OPENED = pl.col("syn_seen")
"""Its beginning is in the capture: durations and sizes are whole."""

SEVERAL = pl.col("subflows") > 1
MPTCP = pl.col("kind") == "mptcp"
"""What applies to Multipath TCP connections alone."""

WHOLE_LEVEL = pl.when(MPTCP & ~pl.col("fallback")).then(pl.lit("mptcp")).otherwise(pl.lit("tcp"))
"""The level at which a connection's data as a whole is counted."""
