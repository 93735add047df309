"""List the reinjections by their cause."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.table import KEYS, NumberTable

CAUSES = {
    "window": "Window",
    "rto": "Timeout",
    "closed": "Subflow closed",
    "unknown": "Unknown",
}
"""``cause`` of the table ``reinjections`` → title of the column."""


def values(traces: Traces) -> pl.DataFrame:
    """Return the number of reinjections over all cells, and the share of each cause."""
    pooled = traces.pooled("reinjections", "cause")
    if pooled.is_empty():
        return pooled
    return pooled.group_by(KEYS, maintain_order=True).agg(
        pl.len().alias("reinjections"), *((pl.col("cause") == cause).mean().alias(cause) for cause in CAUSES)
    )


FIGURE = TraceFigure(
    order=66,
    shape=NumberTable(
        title="Causes of reinjections",
        paper="baerts2015 §5.3.3",
        caption="Both directions, over all cells. Window: in the 50 ms before, less than 5000 bytes of it were left.",
        columns={
            "reinjections": Axis("Reinjections"),
            **{cause: Axis(title, "share") for cause, title in CAUSES.items()},
        },
        values=values,
        nothing="there is no reinjection",
    ),
)
