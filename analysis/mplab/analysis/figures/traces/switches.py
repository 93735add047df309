"""Plot the distribution of the rate at which connections change the subflow on which they send, per second."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import LONG_BYTES
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=31,
    shape=Cdf(
        title="Changes of the subflow per second",
        paper="baerts2015 fig. 5.5",
        axis=Axis("Changes", "1/s", "log"),
        share="Share of connections",
        caption="Directions of connections that carried 1 MB or more and changed the subflow at least once.",
        values=lambda traces: traces.pooled(
            "directions",
            pl.col("switches_per_s").alias("value"),
            pl.col("direction").alias("variant"),
            where=(pl.col("level") == "mptcp") & (pl.col("unique_bytes") >= LONG_BYTES),
        ),
        nothing="no connection of 1 MB changed the subflow",
    ),
)
