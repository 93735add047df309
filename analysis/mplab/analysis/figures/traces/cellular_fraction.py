"""Plot the fraction of each connection's uploaded bytes that the cellular network carried."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CELLULAR, MPTCP, Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.scatter import Scatter


def values(traces: Traces) -> pl.DataFrame:
    """Return the uploaded bytes of each MPTCP connection (``x``), and their fraction on cellular (``y``)."""
    cellular = pl.col("unique_up").filter(pl.col("network") == CELLULAR).sum()
    return traces.each(
        lambda trace: (
            trace.tables["subflows"]
            .join(trace.tables["connections"].filter(MPTCP), on="connection_id", how="semi")
            .group_by("connection_id", maintain_order=True)
            .agg(x=pl.col("unique_up").sum(), y=cellular / pl.col("unique_up").sum())
            .filter(pl.col("x") > 0)
        )
    )


FIGURE = TraceFigure(
    order=50,
    shape=Scatter(
        title="Fraction of uploaded bytes on the cellular network",
        paper="baerts2015 fig. 4.5, 4.7",
        x=Axis("Bytes up", "bytes", "log"),
        y=Axis("Fraction on cellular", "share"),
        caption="A point is a Multipath TCP connection.",
        values=values,
        nothing="no Multipath TCP connection uploaded payload",
    ),
)
