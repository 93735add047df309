"""Plot receive window and data in flight of the largest MPTCP connection, with its reinjections."""

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.common import Axis, thinned
from mplab.analysis.figures.shapes.connection import AGAIN, MAX_POINTS, OneConnection, PlottedConnection
from mplab.analysis.figures.style import LINE_WIDTH
from mplab.format.palette import BLUE, GREEN

FLIGHT, WINDOW = BLUE, GREEN
SIZE = Axis("Bytes", "bytes")


def windows(connection: PlottedConnection) -> pl.DataFrame:
    """Return the bytes in flight and the receive window of a connection over time, in the direction with more data.

    Each row is a time with a point of the time-sequence diagram (data, acknowledgement or window). Columns:
    ``direction``; ``time_s``; ``in_flight``: bytes sent but not acknowledged; ``window``: bytes from the last
    acknowledged one to the right edge of the window.
    """
    ends = pl.when(pl.col("kind") == "data").then(pl.col("offset") + pl.col("bytes"))
    return (
        connection.points.sort("time_s", maintain_order=True)
        .with_columns(
            sent=ends.cum_max().forward_fill(),
            acked=pl.when(pl.col("kind") == "ack").then(pl.col("offset")).cum_max().forward_fill().fill_null(0),
            edge=pl.when(pl.col("kind") == "window").then(pl.col("offset")).cum_max().forward_fill(),
        )
        .drop_nulls("edge")
        .select(
            pl.lit(connection.direction).alias("direction"),
            "time_s",
            in_flight=(pl.col("sent").fill_null(0) - pl.col("acked")).clip(lower_bound=0),
            window=(pl.col("edge") - pl.col("acked")).clip(lower_bound=0),
        )
        # An acknowledgement and its window are two points with the same time.
        .unique("time_s", keep="last", maintain_order=True)
    )


def paint(axes: Axes, connection: PlottedConnection, curves: pl.DataFrame) -> list[Line2D]:
    """Draw window and data in flight over time, with crosses at the top for reinjections; return the legend entries."""
    shown = thinned(curves, MAX_POINTS)
    handles = []
    for column, colour, label in (("window", WINDOW, "Receive window"), ("in_flight", FLIGHT, "In flight")):
        x, y = shown["time_s"].to_numpy(), shown[column].to_numpy()
        axes.step(x, y, where="post", color=colour, linewidth=1.0)
        handles.append(Line2D([], [], color=colour, linewidth=LINE_WIDTH, label=label))
    again = connection.of("reinjection")
    if not again.is_empty():
        marker, colour = AGAIN["reinjection"]
        top = [float(shown["window"].max() or 0) * 1.08] * again.height  # type: ignore[arg-type]
        axes.plot(again["time_s"].to_numpy(), top, linestyle="none", marker=marker, color=colour)
        handles.append(Line2D([], [], linestyle="none", marker=marker, color=colour, label="Reinjection"))
    SIZE.dress(axes, "y")
    return handles


FIGURE = TraceFigure(
    order=71,
    shape=OneConnection(
        title="Receive window and data in flight",
        paper="baerts2015 fig. 5.11, 5.12, 5.13",
        time=Axis("Time since the start of the connection", "s"),
        caption="The largest Multipath TCP connection with two subflows; data in flight stops at the window.",
        values=windows,
        paint=paint,
        nothing="window points",
        height_in=lambda _: 3.0,
    ),
)
