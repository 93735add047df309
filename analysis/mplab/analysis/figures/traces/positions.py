"""Plot the distributions of the times of retransmissions and reinjections within a connection's duration."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP, SEVERAL, CellTrace, Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

NS = 1e9


def values(traces: Traces) -> pl.DataFrame:
    """Return the times of retransmissions and reinjections as fractions of the connection's duration, 0 … 1."""
    return traces.each(_fractions)


def _fractions(trace: CellTrace) -> pl.DataFrame:
    connections = trace.tables["connections"].filter(MPTCP & SEVERAL & (pl.col("duration_s") > 0))
    lives = connections.select("connection_id", "start_ns", "duration_s")
    since = (pl.col("time_ns") - pl.col("start_ns")) / NS / pl.col("duration_s")
    return pl.concat(
        trace.read(table)
        .select("connection_id", "time_ns")
        .join(lives, on="connection_id")
        .select(since.alias("value"), pl.lit(table).alias("variant"))
        for table in ("retransmissions", "reinjections")
    )


FIGURE = TraceFigure(
    order=33,
    shape=Cdf(
        title="When data is sent again in the life of a connection",
        paper="baerts2015 fig. 5.7, 5.9",
        axis=Axis("Time since the start of the connection, by its duration", "share"),
        share="Share of segments",
        caption="Retransmissions and reinjections of connections with two subflows or more.",
        values=values,
        nothing="no connection with two subflows sent data again",
    ),
)
