"""Plot the distribution of the time from the request of the first subflow to that of the second."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=40,
    in_report=True,
    shape=Cdf(
        title="Delay of the second subflow",
        paper="",
        axis=Axis("First MP_CAPABLE to first MP_JOIN", "ms", "log"),
        share="Share of connections",
        caption="Connections that requested a second subflow, from SYN to SYN.",
        values=lambda traces: traces.pooled("connections", pl.col("join_delay_ms").alias("value")),
        nothing="no connection requested a second subflow",
    ),
)
