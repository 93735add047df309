"""Plot the distribution of the durations of connections."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import APPLICATIONS, OPENED
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

FIGURE = TraceFigure(
    order=10,
    shape=Cdf(
        title="Duration of connections",
        paper="baerts2015 fig. 5.1",
        axis=Axis("Duration", "s", "log"),
        share="Share of connections",
        caption="First to last packet of all subflows, of connections whose beginning was captured. " + APPLICATIONS,
        values=lambda traces: traces.applications.pooled(
            "connections", pl.col("duration_s").alias("value"), where=OPENED
        ),
        nothing="no connection began within the captures",
    ),
)
