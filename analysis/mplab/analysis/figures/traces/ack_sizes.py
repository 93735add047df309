"""Plot the distribution of the bytes per acknowledgement, for TCP and for MPTCP data acknowledgements."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import SEVERAL, Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis

LEVELS = {"tcp": "TCP", "mptcp": "data"}


def values(traces: Traces) -> pl.DataFrame:
    """Return the bytes per acknowledgement of downloads, weighted by these bytes.

    ``variant`` (a curve of the figure) separates TCP acknowledgements from MPTCP data acknowledgements.
    """
    return traces.each(
        lambda trace: (
            trace.read("acks")
            .filter((pl.col("direction") == "down") & (pl.col("bytes") > 0))
            .join(trace.tables["connections"].filter(SEVERAL), on="connection_id", how="semi")
            .select(
                value="bytes",
                weight=pl.col("bytes") * pl.col("count"),
                variant=pl.col("level").replace(LEVELS) + " acknowledgements",
            )
        )
    )


FIGURE = TraceFigure(
    order=30,
    shape=Cdf(
        title="Bytes per acknowledgement",
        paper="baerts2015 fig. 5.4",
        axis=Axis("Bytes acknowledged at once", "bytes", "log"),
        share="Share of bytes",
        caption="Acknowledgements of downloaded data, weighted by their bytes; connections with two subflows or more.",
        values=values,
        nothing="no connection with two subflows was acknowledged downloaded data",
    ),
)
