"""Plot the durations of connections that carried 1 MB or more."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import BYTES, LONG_BYTES, OPENED, Traces
from mplab.analysis.figures.shapes.boxes import Boxes
from mplab.analysis.figures.shapes.common import Axis


def values(traces: Traces) -> pl.DataFrame:
    """Return the durations, s, of connections with `LONG_BYTES` or more whose start was captured."""
    return traces.applications.pooled(
        "connections", "connection_id", pl.col("duration_s").alias("value"), where=OPENED & (BYTES >= LONG_BYTES)
    )


FIGURE = TraceFigure(
    order=61,
    shape=Boxes(
        title="Completion of connections of 1 MB or more",
        paper="",
        axis=Axis("First to last packet", "s", "log"),
        values=values,
        nothing="no connection whose beginning was captured carried 1 MB",
    ),
)
