"""Plot the distribution of the bytes sent on one subflow before another one is used (a burst)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=42,
    shape=Cdf(
        title="Bytes of bursts",
        paper="",
        axis=Axis("New data on one subflow in a row", "bytes", "log"),
        share="Share of bytes",
        caption="Each burst weighs as many bytes as it has; thinned bursts count for all those that they replace.",
        values=lambda traces: traces.pooled(
            "bursts",
            pl.col("bytes").alias("value"),
            (pl.col("weight") * pl.col("bytes")).alias("weight"),
            pl.col("direction").alias("variant"),
        ),
        nothing="no Multipath TCP connection sent data",
    ),
)
