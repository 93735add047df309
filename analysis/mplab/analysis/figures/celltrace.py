"""Draw the traces of one cell for its page: bytes of each network over time, and the largest connection."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from mplab.analysis.figures.run_traces import CellTrace
from mplab.analysis.figures.shapes.cells import TIME
from mplab.analysis.figures.shapes.common import Axis, network_title, thinned
from mplab.analysis.figures.shapes.connection import AGAIN, PlottedConnection, plotted
from mplab.analysis.figures.style import QUIET
from mplab.analysis.figures.svgchart import Band, Chart, ChartSeries
from mplab.analysis.figures.traces.bytes_over_time import BYTES, FacetData, colours_of, facet_of

MAX_POINTS = 600
"""Maximum number of points of each kind and subflow that are drawn."""

_KINDS: dict[str, str] = {"retransmission": "plus", "reinjection": "cross"}
SEQUENCE = Axis("Sequence number of the data", "bytes")
SINCE = Axis("Time since the connection began", "s")


@dataclass(frozen=True)
class CellChart:
    """A chart of a cell, with its title and caption."""

    title: str
    caption: str
    chart: Chart


def cell_charts(trace: CellTrace) -> Iterator[CellChart]:
    """Yield the charts of a cell for which its tables have data.

    Raises:
        TablesError: a table is damaged.
    """
    if (facet := facet_of(trace)) is not None:
        yield _bytes_over_time(facet)
    if (connection := _largest(trace)) is not None:
        yield _time_sequence(connection)


def _bytes_over_time(facet: FacetData) -> CellChart:
    colours = colours_of([facet])
    series = [
        ChartSeries(network_title(network), colours[network], "line", x, y) for network, (x, y) in facet.curves.items()
    ]
    for network, (x, y) in facet.curves.items():
        for kind, (_, colour) in AGAIN.items():
            own = facet.again.filter((pl.col("network") == network) & (pl.col("kind") == kind))
            if not own.is_empty():
                times = thinned(own, MAX_POINTS)["time_s"].cast(pl.Float64).to_numpy()
                heights = np.interp(times, x, y)
                series.append(ChartSeries(kind.capitalize(), colour, _KINDS[kind], times, heights))  # type: ignore[arg-type]
    bands = [
        Band(
            f"{network_title(handover.change.network)} {'gone' if handover.gone else 'no longer preferred'}",
            colours[handover.change.network],
            facet.since_begin_s(handover.change.time_s),
            facet.since_begin_s(handover.end_s if handover.gone else handover.change.time_s),
        )
        for handover in facet.handovers
    ]
    return CellChart(
        "Bytes per path over time",
        "New payload of both directions since the first packet; crosses are data sent again.",
        Chart("Bytes per path over time", TIME, BYTES, tuple(series), tuple(bands)),
    )


def _largest(trace: CellTrace) -> PlottedConnection | None:
    """Return the cell's connection that carried most bytes; None without one, or if it has no points."""
    size = (pl.col("bytes_up") + pl.col("bytes_down")).alias("size")
    frame = trace.tables["connections"].select("connection_id", size)
    if frame.is_empty():
        return None
    number = frame.sort("size", "connection_id", descending=[True, False])["connection_id"][0]
    return plotted(trace, number)


def _time_sequence(connection: PlottedConnection) -> CellChart:
    series = []
    acked = connection.of("ack").with_columns(pl.col("offset").cum_max())
    if not acked.is_empty():
        shown = thinned(acked, MAX_POINTS)
        times, offsets = (shown[name].cast(pl.Float64).to_numpy() for name in ("time_s", "offset"))
        series.append(ChartSeries("Acknowledged", QUIET, "step", times, offsets))
    for subflow in connection.subflows:
        data = connection.of("data").filter(pl.col("subflow_id") == subflow)
        if not data.is_empty():
            shown = thinned(data, MAX_POINTS)
            times, low, size = (shown[name].cast(pl.Float64).to_numpy() for name in ("time_s", "offset", "bytes"))
            title = connection.title(subflow)
            series.append(ChartSeries(title, connection.colour(subflow), "strokes", times, low, low + size))
    for kind, (_, colour) in AGAIN.items():
        again = connection.of(kind)
        if not again.is_empty():
            shown = thinned(again, MAX_POINTS)
            times, offsets = (shown[name].cast(pl.Float64).to_numpy() for name in ("time_s", "offset"))
            series.append(ChartSeries(kind.capitalize(), colour, _KINDS[kind], times, offsets))  # type: ignore[arg-type]
    way = "to the phone" if connection.direction == "down" else "from the phone"
    return CellChart(
        "Time-sequence diagram",
        f"The largest connection of the cell (number {connection.number}), data {way}.",
        Chart("Time-sequence diagram of the largest connection", SINCE, SEQUENCE, tuple(series)),
    )
