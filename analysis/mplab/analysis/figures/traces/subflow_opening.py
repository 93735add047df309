"""Plot when each subflow of the largest MPTCP connection was requested, established and first used."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.common import Axis
from mplab.analysis.figures.shapes.connection import OneConnection, PlottedConnection
from mplab.analysis.figures.style import INK

EVENTS = {
    "syn": ("|", "SYN"),
    "mp-capable": ("s", "MP_CAPABLE"),
    "mp-join": ("D", "MP_JOIN"),
    "established": ("o", "Established"),
    "first-data": ("^", "First data"),
}
MS = 1e6


def events(connection: PlottedConnection) -> pl.DataFrame:
    """Return the first event of each kind on each subflow, with its time since the connection began, ms."""
    mine = pl.col("connection_id") == connection.number
    start = connection.trace.tables["connections"].filter(mine)["start_ns"].item()
    return (
        connection.trace.read("events")
        .filter(mine & pl.col("event").is_in(EVENTS))
        .unique(["subflow_id", "event"], keep="first", maintain_order=True)
        .select("subflow_id", "event", time_ms=(pl.col("time_ns") - start) / MS)
    )


def paint(axes: Axes, connection: PlottedConnection, found: pl.DataFrame) -> list[Line2D]:
    """Draw a row per subflow with a mark per event, and return the legend entries."""
    for subflow, event, time in found.iter_rows():
        axes.plot([time], [subflow], marker=EVENTS[event][0], color=connection.colour(subflow), markersize=7.0)
    lanes = sorted(found["subflow_id"].unique())
    axes.set_yticks(lanes, [connection.title(subflow) for subflow in lanes])
    axes.set_ylim(max(lanes) + 0.6, min(lanes) - 0.6)
    axes.tick_params(axis="y", labelcolor=INK)
    shown = [look for event, look in EVENTS.items() if event in set(found["event"])]
    return [Line2D([], [], linestyle="none", marker=marker, color=INK, label=label) for marker, label in shown]


FIGURE = TraceFigure(
    order=72,
    shape=OneConnection(
        title="Opening of subflows",
        paper="baerts2015 fig. 4.6",
        time=Axis("Time since the start of the connection", "ms"),
        caption="The largest Multipath TCP connection with two subflows: when each was requested, established, "
        "first used.",
        values=events,
        paint=paint,
        nothing="events",
        height_in=lambda found: 1.1 + 0.4 * found["subflow_id"].n_unique(),
        legend_columns=5,
    ),
)
