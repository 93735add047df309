"""Time-sequence diagrams of one connection: what was sent when, on which subflow, and what of it was sent again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.lines import Line2D

from analysis.figures.shapes.common import Axis, NoDataError, network_colours, network_title, thinned
from analysis.figures.style import LINE_WIDTH, QUIET, Canvas, Drawing
from analysis.text import slug
from analysis.traces import Trace, Traces

NS = 1e9
MAX_POINTS = 2500
"""Points of each kind that are drawn; the CSV has them all."""

SUBFLOW_COLOURS = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#009E73", "#D55E00")
AGAIN = {"retransmission": ("+", "#D62728"), "reinjection": ("x", "#7A0177")}
COLUMNS = ("cell", "connection_id", "subflow_id", "network", "direction", "kind", "time_s", "offset", "bytes", "weight")
TIME, BYTES = Axis("Time since the connection began", "s"), Axis("Data sequence number", "bytes")


@dataclass(frozen=True)
class Connection:
    """One connection with its points, in the direction that carried more; times in seconds since its beginning."""

    trace: Trace
    number: int
    direction: str
    points: pl.DataFrame
    networks: Mapping[int, str]

    @property
    def text(self) -> str:
        """Which one it is."""
        return f"Cell {self.trace.name}, connection {self.number}, {self.direction}."

    def of(self, *kinds: str) -> pl.DataFrame:
        """The points of some kinds, in time order."""
        return self.points.filter(pl.col("kind").is_in(kinds)).sort("time_s", maintain_order=True)

    @property
    def subflows(self) -> list[int]:
        """Subflows that have points."""
        return sorted(self.points["subflow_id"].unique())

    def colour(self, subflow: int) -> str:
        """That of its network, when no other subflow has the same."""
        own = self.networks.get(subflow, "")
        if own and list(self.networks.values()).count(own) == 1:
            return network_colours([own])[own]
        return SUBFLOW_COLOURS[subflow % len(SUBFLOW_COLOURS)]

    def title(self, subflow: int) -> str:
        """``Subflow 0, WiFi``."""
        network = self.networks.get(subflow, "")
        return f"Subflow {subflow}, {network_title(network)}" if network else f"Subflow {subflow}"


def largest(traces: Traces) -> Connection:
    """The MPTCP connection with two subflows or more that carried most; raises `NoDataError`."""
    found = traces.largest_mptcp
    if found is None:
        raise NoDataError("no Multipath TCP connection has two subflows")
    trace, number = found
    mine = pl.col("connection_id") == number
    (connection,) = trace.tables["connections"].filter(mine).iter_rows(named=True)
    way = "up" if connection["bytes_up"] > connection["bytes_down"] else "down"
    points = trace.read("points").filter(mine & (pl.col("direction") == way))
    if points.is_empty():
        raise NoDataError(f"{trace.name}: connection {number} has no points of a time-sequence diagram")
    subflows = trace.tables["subflows"].filter(mine).select("subflow_id", "network").iter_rows()
    seconds = (pl.col("time_ns") - connection["start_ns"]) / NS
    return Connection(trace, number, way, points.with_columns(time_s=seconds), dict(subflows))


def draw_sequence(axes: Axes, connection: Connection) -> list[Line2D]:
    """Data as strokes in the colours of subflows, what was sent again as crosses, acknowledgements as a line."""
    handles = []
    acked = connection.of("ack").with_columns(pl.col("offset").cum_max())
    if not acked.is_empty():
        shown = thinned(acked, MAX_POINTS)
        axes.step(shown["time_s"].to_numpy(), shown["offset"].to_numpy(), where="post", color=QUIET, linewidth=0.8)
        handles.append(Line2D([], [], color=QUIET, linewidth=0.8, label="Acknowledged"))
    for subflow in connection.subflows:
        data = connection.of("data").filter(pl.col("subflow_id") == subflow)
        if data.is_empty():
            continue
        strokes = [
            [(time, offset), (time, offset + size)]
            for time, offset, size in thinned(data, MAX_POINTS).select("time_s", "offset", "bytes").iter_rows()
        ]
        colour = connection.colour(subflow)
        axes.add_collection(LineCollection(strokes, colors=colour, linewidths=1.8))
        handles.append(Line2D([], [], color=colour, linewidth=LINE_WIDTH + 1, label=connection.title(subflow)))
    for kind, (marker, colour) in AGAIN.items():
        again = connection.of(kind)
        if not again.is_empty():
            shown = thinned(again, MAX_POINTS)
            look: dict[str, Any] = {"linestyle": "none", "marker": marker, "color": colour, "markersize": 5.0}
            axes.plot(shown["time_s"].to_numpy(), shown["offset"].to_numpy(), zorder=3, **look)
            handles.append(Line2D([], [], label=kind.capitalize(), **look))
    axes.autoscale_view()
    return handles


def csv_rows(connection: Connection) -> list[tuple[Any, ...]]:
    """Every point, for the figure's CSV."""
    named = connection.points.with_columns(
        cell=pl.lit(connection.trace.name),
        network=pl.col("subflow_id").replace_strict(
            list(connection.networks), list(connection.networks.values()), default="", return_dtype=pl.String
        ),
    )
    return named.select(COLUMNS).rows()


@dataclass(frozen=True)
class TimeSequence:
    """The time-sequence diagram of the largest MPTCP connection."""

    title: str
    paper: str
    caption: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """One drawing; raises `NoDataError`."""
        connection = largest(traces)
        stem = slug("trace", name)
        with Canvas(self.title, 3.6) as canvas:
            axes = canvas.facets(1)[0]
            handles = draw_sequence(axes, connection)
            TIME.dress(axes, "x")
            BYTES.dress(axes, "y")
            canvas.legend(handles, columns=3)
            svg = canvas.svg(stem)
        caption = f"{self.caption} {connection.text}"
        yield Drawing(stem, "traces", self.title, caption, svg, COLUMNS, csv_rows(connection))
