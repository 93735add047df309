"""List the additional subflows, and those that carry no data."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import MPTCP, CellTrace, Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.table import KEYS, NumberTable


def values(traces: Traces) -> pl.DataFrame:
    """Return the numbers of additional subflows and of unused ones, over all cells, and the share of the latter."""
    subflows = traces.each(_additional)
    if subflows.is_empty():
        return subflows
    counts = subflows.group_by(KEYS, maintain_order=True).agg(pl.len().alias("additional"), pl.col("unused").sum())
    return counts.with_columns(share=pl.col("unused") / pl.col("additional"))


def _additional(trace: CellTrace) -> pl.DataFrame:
    own = trace.tables["subflows"].join(trace.tables["connections"].filter(MPTCP), on="connection_id", how="semi")
    return own.filter((pl.col("role") == "additional") & pl.col("established")).select(~pl.col("used").alias("unused"))


FIGURE = TraceFigure(
    order=59,
    shape=NumberTable(
        title="Additional subflows without data",
        paper="baerts2015 §5.3.1",
        caption="Established additional subflows of Multipath TCP connections, over all cells.",
        columns={
            "additional": Axis("Additional subflows"),
            "unused": Axis("Without data"),
            "share": Axis("Share", "share"),
        },
        values=values,
        nothing="there is no additional subflow",
    ),
)
