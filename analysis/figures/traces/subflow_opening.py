"""How the subflows of the largest MPTCP connection came to be."""

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
from matplotlib.lines import Line2D

from analysis.figures.shapes.common import Axis, NoDataError
from analysis.figures.shapes.sequence import largest
from analysis.figures.style import INK, Canvas, Drawing
from analysis.text import slug
from analysis.traces import Traces

ORDER = 72
COLUMNS = ("cell", "connection_id", "subflow_id", "event", "time_ms")
EVENTS = {
    "syn": ("|", "SYN"),
    "mp-capable": ("s", "MP_CAPABLE"),
    "mp-join": ("D", "MP_JOIN"),
    "established": ("o", "Established"),
    "first-data": ("^", "First data"),
}
MS = 1e6
TIME = Axis("Time since the connection began", "ms")


@dataclass(frozen=True)
class Opening:
    """A lane per subflow, a mark per event."""

    title: str
    paper: str
    caption: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """One drawing; raises `NoDataError`."""
        connection = largest(traces)
        mine = pl.col("connection_id") == connection.number
        start = connection.trace.tables["connections"].filter(mine)["start_ns"].item()
        events = (
            connection.trace.read("events")
            .filter(mine & pl.col("event").is_in(EVENTS))
            .unique(["subflow_id", "event"], keep="first", maintain_order=True)
            .select("subflow_id", "event", time_ms=(pl.col("time_ns") - start) / MS)
        )
        if events.is_empty():
            raise NoDataError(f"{connection.trace.name}: connection {connection.number} has no events")
        stem = slug("trace", name)
        lanes = sorted(events["subflow_id"].unique())
        with Canvas(self.title, 1.1 + 0.4 * len(lanes)) as canvas:
            axes = canvas.facets(1)[0]
            for subflow, event, time in events.iter_rows():
                axes.plot([time], [subflow], marker=EVENTS[event][0], color=connection.colour(subflow), markersize=7.0)
            axes.set_yticks(lanes, [connection.title(subflow) for subflow in lanes])
            axes.set_ylim(max(lanes) + 0.6, min(lanes) - 0.6)
            axes.tick_params(axis="y", labelcolor=INK)
            TIME.dress(axes, "x")
            shown = [look for event, look in EVENTS.items() if event in set(events["event"])]
            canvas.legend(
                [Line2D([], [], linestyle="none", marker=m, color=INK, label=label) for m, label in shown], columns=5
            )
            svg = canvas.svg(stem)
        place = (connection.trace.name, connection.number)
        rows = [(*place, *row) for row in events.iter_rows()]
        yield Drawing(stem, "traces", self.title, f"{self.caption} {connection.text}", svg, COLUMNS, rows)


FIGURE = Opening(
    title="Opening of subflows",
    paper="baerts2015 fig. 4.6",
    caption="The largest Multipath TCP connection with two subflows: when each was asked for, established, first used.",
)
