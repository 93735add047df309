"""Receive window and data in flight of the largest MPTCP connection, and where it reinjected."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from matplotlib.lines import Line2D

from analysis.figures.shapes.common import Axis, NoDataError, thinned
from analysis.figures.shapes.sequence import AGAIN, MAX_POINTS, Connection, largest
from analysis.figures.style import LINE_WIDTH, Canvas, Drawing
from analysis.text import slug
from analysis.traces import Traces

ORDER = 71
COLUMNS = ("cell", "connection_id", "direction", "time_s", "in_flight", "window")
FLIGHT, WINDOW = "#0072B2", "#009E73"
SIZE, TIME = Axis("Bytes", "bytes"), Axis("Time since the connection began", "s")


def windows(connection: Connection) -> pl.DataFrame:
    """At each point: bytes sent and not acknowledged, and how much the receiver would take beyond that number."""
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
            "time_s",
            in_flight=(pl.col("sent").fill_null(0) - pl.col("acked")).clip(lower_bound=0),
            window=(pl.col("edge") - pl.col("acked")).clip(lower_bound=0),
        )
        # An acknowledgement and the window that it told are two points of one moment.
        .unique("time_s", keep="last", maintain_order=True)
    )


@dataclass(frozen=True)
class WindowOverTime:
    """Two curves over time, and crosses on top where data was reinjected."""

    title: str
    paper: str
    caption: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """One drawing; raises `NoDataError`."""
        connection = largest(traces)
        curves = windows(connection)
        if curves.is_empty():
            raise NoDataError(f"{connection.trace.name}: connection {connection.number} has no window points")
        stem = slug("trace", name)
        shown = thinned(curves, MAX_POINTS)
        again = connection.of("reinjection")
        handles = []
        with Canvas(self.title, 3.0) as canvas:
            axes = canvas.facets(1)[0]
            for column, colour, label in (("window", WINDOW, "Receive window"), ("in_flight", FLIGHT, "In flight")):
                x, y = shown["time_s"].to_numpy(), shown[column].to_numpy()
                axes.step(x, y, where="post", color=colour, linewidth=1.0)
                handles.append(Line2D([], [], color=colour, linewidth=LINE_WIDTH, label=label))
            if not again.is_empty():
                marker, colour = AGAIN["reinjection"]
                top = [float(shown["window"].max() or 0) * 1.08] * again.height  # type: ignore[arg-type]
                axes.plot(again["time_s"].to_numpy(), top, linestyle="none", marker=marker, color=colour)
                handles.append(Line2D([], [], linestyle="none", marker=marker, color=colour, label="Reinjection"))
            TIME.dress(axes, "x")
            SIZE.dress(axes, "y")
            canvas.legend(handles)
            svg = canvas.svg(stem)
        place = (connection.trace.name, connection.number, connection.direction)
        rows = [(*place, *row) for row in curves.iter_rows()]
        yield Drawing(stem, "traces", self.title, f"{self.caption} {connection.text}", svg, COLUMNS, rows)


FIGURE = WindowOverTime(
    title="Receive window and data in flight",
    paper="baerts2015 fig. 5.11, 5.12, 5.13",
    caption="The largest Multipath TCP connection with two subflows; data in flight stops at the window.",
)
