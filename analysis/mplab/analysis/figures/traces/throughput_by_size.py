"""Plot the throughput of flows in groups of their size, by transport (nikravesh2016 fig. 4)."""

import polars as pl

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CellTrace, Traces, as_a_whole
from mplab.analysis.figures.shapes.classes import Classes
from mplab.analysis.figures.shapes.common import Axis

GROUPS = (
    (10_000, "below 10 kB"),
    (100_000, "10 to 100 kB"),
    (1_000_000, "100 kB to 1 MB"),
    (10_000_000, "1 to 10 MB"),
    (float("inf"), "10 MB and more"),
)
"""Upper end of each group, bytes, and its name. The paper has five groups; its text gives only one limit, 100 kB."""

MAX_IDLE_MS = 1000.0
"""Connections with a longer pause are left out, as in the paper: their throughput is that of the application."""


def values(traces: Traces) -> pl.DataFrame:
    """Return the mean throughput of each cell in each group, as a share of the best transport's mean in the group."""
    rows = traces.applications.each(_throughputs)
    if rows.is_empty():
        return rows
    several = [name for name in ("scenario", "link") if rows[name].n_unique() > 1]
    facet = pl.concat_str(several, separator=" · ") if several else pl.lit("")
    keys = ["facet", "group", "transport"]
    means = rows.with_columns(facet=facet).group_by(*keys, "cell", maintain_order=True).agg(pl.col("value").mean())
    best = means.group_by(keys).agg(pl.col("value").mean()).group_by("facet", "group").agg(pl.col("value").max())
    shares = means.join(best.rename({"value": "best"}), on=["facet", "group"])
    names = pl.col("group").replace_strict(dict(enumerate(name for _, name in GROUPS)), return_dtype=pl.String)
    return shares.sort("facet", "group", maintain_order=True).select(
        "facet", names.alias("class"), "transport", "cell", value=pl.col("value") / pl.col("best")
    )


def _throughputs(trace: CellTrace) -> pl.DataFrame:
    size = pl.col("unique_bytes")
    group = pl.sum_horizontal(*(size >= limit for limit, _ in GROUPS[:-1])).cast(pl.Int64)
    rows = as_a_whole(trace.read("directions"), trace)
    kept = rows.filter(
        (size > 0) & (pl.col("throughput_bps") > 0) & (pl.col("idle_max_ms").fill_null(0) <= MAX_IDLE_MS)
    )
    return kept.select(group=group, value=pl.col("throughput_bps").cast(pl.Float64))


FIGURE = TraceFigure(
    order=64,
    shape=Classes(
        title="Throughput by the size of the flow",
        paper="nikravesh2016 fig. 4",
        axis=Axis("Throughput, best transport of the group", "share"),
        caption=(
            "Mean throughput of the flows of a cell, as a share of the best transport's mean in the group. A flow is "
            "one direction of a connection; flows with a pause of more than a second are left out."
        ),
        values=values,
        nothing="no connection has a throughput without a long pause",
        section="traces",
    ),
)
