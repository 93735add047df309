"""Plot the time-sequence diagram of the largest MPTCP connection: data by subflow, retransmissions and reinjections."""

from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.shapes.common import Axis, thinned
from mplab.analysis.figures.shapes.connection import AGAIN, MAX_POINTS, OneConnection, PlottedConnection
from mplab.analysis.figures.style import QUIET

COLUMNS = ("subflow_id", "network", "direction", "kind", "time_s", "offset", "bytes", "weight")
BYTES = Axis("Data sequence number", "bytes")


def points(connection: PlottedConnection) -> pl.DataFrame:
    """Return all points of a connection's time-sequence diagram, with the network of their subflow."""
    subflows, names = list(connection.networks), list(connection.networks.values())
    network = pl.col("subflow_id").replace_strict(subflows, names, default="", return_dtype=pl.String)
    return connection.points.with_columns(network=network).select(COLUMNS)


def paint(axes: Axes, connection: PlottedConnection, _: pl.DataFrame) -> list[Line2D]:
    """Draw the time-sequence diagram, and return the legend entries.

    Data are strokes in the subflows' colours, data sent again are crosses, and acknowledgements are a line.
    """
    handles = []
    acked = connection.of("ack").with_columns(pl.col("offset").cum_max())
    if not acked.is_empty():
        shown = thinned(acked, MAX_POINTS)
        axes.step(
            shown["time_s"].to_numpy(), shown["offset"].to_numpy(), where="post", color=QUIET, linewidth=0.6, zorder=1
        )
        handles.append(Line2D([], [], color=QUIET, linewidth=0.6, label="Acknowledged"))
    for subflow in connection.subflows:
        data = connection.of("data").filter(pl.col("subflow_id") == subflow)
        if data.is_empty():
            continue
        strokes = [
            [(time, offset), (time, offset + size)]
            for time, offset, size in thinned(data, MAX_POINTS).select("time_s", "offset", "bytes").iter_rows()
        ]
        colour = connection.colour(subflow)
        axes.add_collection(LineCollection(strokes, colors=colour, linewidths=2.4, capstyle="projecting"))
        handles.append(Line2D([], [], color=colour, linewidth=2.4, label=connection.title(subflow)))
    for kind, (marker, colour) in AGAIN.items():
        again = connection.of(kind)
        if not again.is_empty():
            shown = thinned(again, MAX_POINTS)
            look: dict[str, Any] = {"linestyle": "none", "marker": marker, "color": colour, "markersize": 5.0}
            axes.plot(shown["time_s"].to_numpy(), shown["offset"].to_numpy(), zorder=3, **look)
            handles.append(Line2D([], [], label=kind.capitalize(), **look))
    axes.autoscale_view()
    BYTES.dress(axes, "y")
    return handles


FIGURE = TraceFigure(
    order=70,
    in_report=True,
    shape=OneConnection(
        title="Time-sequence diagram",
        paper="baerts2015 ch. 5 (mptcptrace's time-sequence graphs)",
        time=Axis("Time since the start of the connection", "s"),
        caption="Data of the largest Multipath TCP connection with two subflows; crosses are data sent again.",
        values=points,
        paint=paint,
        nothing="points",
        height_in=lambda _: 3.0,
    ),
)
