"""Plot the throughput of connections that carried 1 MB or more in one direction."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import LONG_BYTES, Traces, as_a_whole
from mplab.analysis.figures.shapes.boxes import Boxes
from mplab.analysis.figures.shapes.common import Axis


def values(traces: Traces) -> pl.DataFrame:
    """Return the throughput, Mbit/s, of each direction in which a connection carried 1 MB or more."""
    return traces.applications.each(
        lambda trace: (
            trace.tables["directions"]
            .filter(pl.col("unique_bytes") >= LONG_BYTES)
            .pipe(as_a_whole, trace)
            .select("connection_id", value=pl.col("throughput_bps") / 1e6, variant="direction")
        )
    )


FIGURE = TraceFigure(
    order=60,
    shape=Boxes(
        title="Throughput of connections of 1 MB or more",
        paper="baerts2015 fig. 4.8",
        axis=Axis("Unique payload over the time of the transfer", "Mbit/s"),
        values=values,
        nothing="no connection carried 1 MB in one direction",
    ),
)
