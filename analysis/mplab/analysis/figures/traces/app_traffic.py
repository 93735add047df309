"""List the mean numbers of connections and bytes of each scenario."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import APPLICATIONS, OPENED, CellTrace, Traces
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.table import KEYS, NumberTable


def values(traces: Traces) -> pl.DataFrame:
    """Return means over the cells of the applications' connections and bytes, and the number of cells."""
    cells = traces.applications.each(_sums)
    if cells.is_empty() or not cells["connections"].sum():
        return cells.clear()
    means = pl.col("connections", "bytes_up", "bytes_down").mean()
    return cells.group_by(KEYS, maintain_order=True).agg(means, cells=pl.len())


def _sums(trace: CellTrace) -> pl.DataFrame:
    opened = trace.tables["connections"].filter(OPENED)
    return opened.select(pl.len().alias("connections"), pl.col("bytes_up", "bytes_down").sum())


FIGURE = TraceFigure(
    order=19,
    shape=NumberTable(
        title="Connections and bytes of applications",
        paper="baerts2015 table 4.1",
        caption=f"Means over the cells. {APPLICATIONS}",
        columns={
            "connections": Axis("Connections"),
            "bytes_up": Axis("Up", "bytes"),
            "bytes_down": Axis("Down", "bytes"),
            "cells": Axis("Cells"),
        },
        values=values,
        nothing="there is no connection whose start is in the capture",
    ),
)
