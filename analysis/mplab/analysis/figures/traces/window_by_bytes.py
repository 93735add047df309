"""Draw box plots of the largest receive window that each connection announced, by classes of its bytes."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import BYTES, Traces
from mplab.analysis.figures.shapes.boxes import Boxes
from mplab.analysis.figures.shapes.common import Axis

CLASSES = ((10_000, "below 10 kB"), (100_000, "10–100 kB"), (1_000_000, "100 kB–1 MB"), (10_000_000, "1–10 MB"))
ABOVE = "10 MB or more"


def values(traces: Traces) -> pl.DataFrame:
    """Return the largest receive window, bytes, that either end of a connection announced.

    Column ``variant`` is the size class of the connection, by its bytes; the figure has one box plot for each class.
    """
    return traces.each(
        lambda trace: (
            trace.tables["directions"]
            .group_by("connection_id", maintain_order=True)
            .agg(value=pl.col("window_max").max())
            .join(trace.tables["connections"].select("connection_id", BYTES), on="connection_id")
            .select("connection_id", "value", variant=_class())
        )
    )


def _class() -> pl.Expr:
    """Return a polars expression: a connection's size class as ``ORDER|NAME`` (``1|10–100 kB``), sortable by size."""
    expression = pl.lit(f"{len(CLASSES)}|{ABOVE}")
    for index, (limit, name) in reversed(list(enumerate(CLASSES))):
        expression = pl.when(pl.col("bytes") < limit).then(pl.lit(f"{index}|{name}")).otherwise(expression)
    return expression


FIGURE = TraceFigure(
    order=62,
    shape=Boxes(
        title="Largest announced receive window, by bytes of the connection",
        paper="baerts2015 fig. 5.10",
        axis=Axis("Receive window", "bytes", "log"),
        values=values,
        nothing="no window was announced after a SYN",
    ),
)
