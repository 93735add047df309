"""Plot the distributions of retransmitted and reinjected bytes, as fractions of the connection's bytes."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP, SEVERAL, CellTrace, Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis


def values(traces: Traces) -> pl.DataFrame:
    """Return, for each connection and direction, retransmitted and reinjected bytes divided by the application's bytes.

    Retransmitted bytes include those that fill a hole in the capture.
    """
    return traces.each(_fractions)


def _fractions(trace: CellTrace) -> pl.DataFrame:
    again = (
        trace.tables["directions"]
        .filter(pl.col("level") == "tcp")
        .group_by("connection_id", "direction", maintain_order=True)
        .agg(pl.col("retransmitted_bytes").sum() + pl.col("hole_bytes").fill_null(0).sum())
    )
    connections = trace.tables["connections"].filter(MPTCP & SEVERAL)
    parts = []
    for direction in ("up", "down"):
        own = connections.join(again.filter(pl.col("direction") == direction), on="connection_id").filter(
            pl.col(f"bytes_{direction}") > 0
        )
        for name, column in (("retransmitted", "retransmitted_bytes"), ("reinjected", f"reinjected_{direction}")):
            share = (pl.col(column) / pl.col(f"bytes_{direction}")).alias("value")
            parts.append(own.select(share, pl.lit(f"{name} {direction}").alias("variant")))
    return pl.concat(parts)


FIGURE = TraceFigure(
    order=32,
    shape=Cdf(
        title="Bytes sent again, by the bytes of the connection",
        paper="baerts2015 fig. 4.10, 5.6, 5.8",
        axis=Axis("Fraction of the bytes", "share"),
        share="Share of connections",
        caption="Connections with two subflows or more. Retransmitted: on the same subflow. "
        "Reinjected: on another one.",
        values=values,
        nothing="no connection with two subflows carried payload",
    ),
)
