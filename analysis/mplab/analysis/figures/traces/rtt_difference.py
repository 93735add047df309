"""Plot the distribution of the difference between the mean round-trip times of a connection's subflows."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

ENOUGH_SAMPLES = 3
"""Minimum number of round-trip times for a mean (the same as in the scripts of the paper)."""


def values(traces: Traces) -> pl.DataFrame:
    """Return, for each connection, the largest minus the smallest mean round-trip time of its subflows' uploads, ms."""
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
        caption="Connections with two subflows or more on which three round trips of data from the phone "
        "were measured.",
        values=values,
        nothing="no connection has two subflows with three round trips of data from the phone",
    ),
)
