"""Plot the duration and the bytes of each connection."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import APPLICATIONS, BYTES, OPENED
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.scatter import Scatter

FIGURE = TraceFigure(
    order=12,
    shape=Scatter(
        title="Duration and bytes of connections",
        paper="baerts2015 fig. 4.2",
        x=Axis("Duration", "s", "log"),
        y=Axis("Payload of both directions", "bytes", "log"),
        caption="A point is a connection whose beginning was captured. " + APPLICATIONS,
        values=lambda traces: traces.applications.pooled(
            "connections", "connection_id", pl.col("duration_s").alias("x"), BYTES.alias("y"), where=OPENED
        ),
        nothing="no connection carried payload",
    ),
)
