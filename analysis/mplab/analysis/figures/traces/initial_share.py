"""Plot the distribution of the share of a connection's bytes that its initial subflow carried."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP, SEVERAL, UNIQUE, Traces
from mplab.analysis.figures.shapes.cdf import Cdf
from mplab.analysis.figures.shapes.common import Axis


def values(traces: Traces) -> pl.DataFrame:
    """Return, for each connection, the unique payload of the initial subflow divided by that of all subflows."""
    first = UNIQUE.filter(pl.col("role") == "initial").sum()
    return traces.each(
        lambda trace: (
            trace.tables["subflows"]
            .join(trace.tables["connections"].filter(MPTCP & SEVERAL), on="connection_id", how="semi")
            .group_by("connection_id", maintain_order=True)
            .agg(value=first / UNIQUE.sum(), total=UNIQUE.sum())
            .filter(pl.col("total") > 0)
            .select("value")
        )
    )


FIGURE = TraceFigure(
    order=41,
    shape=Cdf(
        title="Bytes on the initial subflow",
        paper="",
        axis=Axis("Fraction of the payload of both directions", "share"),
        share="Share of connections",
        caption="Connections with two subflows or more.",
        values=values,
        nothing="no connection with two subflows carried payload",
    ),
)
