"""How far apart the subflows of a connection are."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

ENOUGH_SAMPLES = 3
"""A mean of fewer says little (the scripts behind the paper ask for as many)."""


def values(traces: Traces) -> pl.DataFrame:
    """Per connection, largest less smallest mean round trip of what the phone sent."""
    means = traces.pooled(
        "directions",
        "connection_id",
        "rtt_mean_ms",
        where=(pl.col("level") == "tcp") & (pl.col("direction") == "up") & (pl.col("rtt_samples") >= ENOUGH_SAMPLES),
    )
    if means.is_empty():
        return means
    keys = ["cell", "scenario", "link", "transport", "connection_id"]
    rtt = pl.col("rtt_mean_ms")
    return (
        means.drop_nulls()
        .group_by(keys, maintain_order=True)
        .agg(n=pl.len(), value=rtt.max() - rtt.min())
        .filter(pl.col("n") > 1)
    )


FIGURE = TraceFigure(
    order=23,
    shape=Cdf(
        title="Mean round trips: slowest less fastest subflow",
        paper="baerts2015 fig. 5.3",
        axis=Axis("Difference", "ms", "log"),
        share="Share of connections",
        caption="Connections with two subflows or more on which three round trips of what the phone sent "
        "were measured.",
        values=values,
        nothing="no connection has two subflows with three round trips of what the phone sent",
    ),
)
