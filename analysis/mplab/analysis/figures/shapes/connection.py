"""Draw one connection over time: the Multipath TCP connection with two or more subflows that carried most bytes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.run_traces import CellTrace, Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError, network_colours, network_title
from mplab.analysis.figures.style import Canvas, Drawing
from mplab.analysis.text import slug
from mplab.format.palette import BLUE, GREEN, OLIVE, PURPLE, RED, SKY, VERMILION, VIOLET

NS = 1e9
MAX_POINTS = 2500
"""Maximum number of points of each kind that are drawn; the CSV has all points."""

SUBFLOW_COLOURS = (BLUE, VERMILION, PURPLE, SKY, GREEN, OLIVE)
AGAIN = {"retransmission": ("+", RED), "reinjection": ("x", VIOLET)}
"""Kind of data that is sent again → its marker and colour."""


@dataclass(frozen=True)
class PlottedConnection:
    """A connection with the points of its time-sequence diagram, in the direction that carried more bytes.

    ``points`` has ``time_s``, seconds since the connection's start; ``networks`` is subflow → name of its network.
    """

    trace: CellTrace
    number: int
    direction: str
    points: pl.DataFrame
    networks: Mapping[int, str]

    @property
    def text(self) -> str:
        """Return a sentence that identifies the connection."""
        return f"Cell {self.trace.name}, connection {self.number}, {self.direction}."

    def of(self, *kinds: str) -> pl.DataFrame:
        """Return the points of the given kinds, sorted by time."""
        return self.points.filter(pl.col("kind").is_in(kinds)).sort("time_s", maintain_order=True)

    @property
    def subflows(self) -> list[int]:
        """Return the IDs of the subflows that have points, ascending."""
        return sorted(self.points["subflow_id"].unique())

    def colour(self, subflow: int) -> str:
        """Return the colour of the subflow's network, or a different colour if several subflows use that network."""
        own = self.networks.get(subflow, "")
        if own and list(self.networks.values()).count(own) == 1:
            return network_colours([own])[own]
        return SUBFLOW_COLOURS[subflow % len(SUBFLOW_COLOURS)]

    def title(self, subflow: int) -> str:
        """Return the title of a subflow, with its network if it is known: ``Subflow 0, WiFi``."""
        network = self.networks.get(subflow, "")
        return f"Subflow {subflow}, {network_title(network)}" if network else f"Subflow {subflow}"


def largest(traces: Traces) -> PlottedConnection:
    """Return the MPTCP connection with two subflows or more that carried most bytes.

    Raises:
        NoDataError: there is no such connection, or it has no points.
    """
    chosen = traces.largest_mptcp
    if chosen is None:
        raise NoDataError("no Multipath TCP connection has two subflows")
    trace, number = chosen
    connection = plotted(trace, number)
    if connection is None:
        raise NoDataError(f"{trace.name}: connection {number} has no points of a time-sequence diagram")
    return connection


def plotted(trace: CellTrace, number: int) -> PlottedConnection | None:
    """Return connection ``number`` of a cell with its points, or None if it has none."""
    mine = pl.col("connection_id") == number
    (connection,) = trace.tables["connections"].filter(mine).iter_rows(named=True)
    direction = "up" if connection["bytes_up"] > connection["bytes_down"] else "down"
    points = trace.read("points").filter(mine & (pl.col("direction") == direction))
    if points.is_empty():
        return None
    subflows = trace.tables["subflows"].filter(mine).select("subflow_id", "network").iter_rows()
    seconds = (pl.col("time_ns") - connection["start_ns"]) / NS
    return PlottedConnection(trace, number, direction, points.with_columns(time_s=seconds), dict(subflows))


@dataclass(frozen=True)
class OneConnection:
    """A figure of the largest MPTCP connection, with time on the x axis.

    ``values`` returns the data of the figure; its CSV file has these data after the columns ``cell`` and
    ``connection_id``. ``paint`` draws them, and returns the entries of the legend.
    """

    title: str
    paper: str
    time: Axis
    caption: str
    values: Callable[[PlottedConnection], pl.DataFrame]
    paint: Callable[[Axes, PlottedConnection, pl.DataFrame], list[Line2D]]
    nothing: str
    """Name of the missing data, for the reason when there are no values."""
    height_in: Callable[[pl.DataFrame], float]
    legend_columns: int = 3

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield one drawing. Raises NoDataError when there is nothing to draw."""
        connection = largest(traces)
        frame = self.values(connection)
        if frame.is_empty():
            raise NoDataError(f"{connection.trace.name}: connection {connection.number} has no {self.nothing}")
        stem = slug("trace", name)
        with Canvas(self.title, self.height_in(frame)) as canvas:
            axes = canvas.facets(1)[0]
            handles = self.paint(axes, connection, frame)
            self.time.dress(axes, "x")
            canvas.legend(handles, columns=self.legend_columns)
            svg = canvas.svg(stem)
        identity = (connection.trace.name, connection.number)
        columns = ("cell", "connection_id", *frame.columns)
        rows = [(*identity, *row) for row in frame.iter_rows()]
        yield Drawing(stem, "traces", self.title, f"{self.caption} {connection.text}", svg, columns, rows)
