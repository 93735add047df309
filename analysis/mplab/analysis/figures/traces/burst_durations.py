"""Plot the distribution of the time for which data is sent on one subflow before another one is used (a burst)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=43,
    shape=Cdf(
        title="Duration of bursts",
        paper="",
        axis=Axis("First to last segment on one subflow in a row", "s", "log"),
        share="Share of bursts",
        caption="Bursts of two segments or more; thinned bursts count for all those that they replace.",
        values=lambda traces: traces.pooled(
            "bursts", pl.col("duration_s").alias("value"), "weight", pl.col("direction").alias("variant")
        ),
        nothing="no Multipath TCP connection sent two segments in a row",
    ),
)
