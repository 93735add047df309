"""Plot the round-trip times of each network over time, in one cell of each transport."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CellTrace, with_network
from mplab.analysis.figures.shapes.cells import CellsOverTime
from mplab.analysis.figures.shapes.common import Axis, network_colours, network_title, thinned
from mplab.analysis.figures.traces.bytes_over_time import NS, begin_ns

MAX_POINTS = 600
"""Maximum number of samples of a network that are drawn in a facet; the CSV has all of them."""

COLUMNS = ("cell", "scenario", "link", "transport", "network", "time_s", "rtt_ms", "weight")


@dataclass(frozen=True)
class CellRtts:
    """Round trips of a cell: the columns ``network``, ``time_s``, ``rtt_ms`` and ``weight``."""

    trace: CellTrace
    samples: pl.DataFrame

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the cell in the CSV file."""
        trace = self.trace
        for row in self.samples.iter_rows():
            yield (trace.name, trace.scenario, trace.link, trace.transport, *row)

    @property
    def networks(self) -> list[str]:
        """Return the networks that have samples, WiFi first."""
        return sorted(self.samples["network"].unique(), key=lambda name: (name != "wifi", name))


def samples(trace: CellTrace) -> CellRtts | None:
    """Return the round trips of TCP in a cell, sorted by time; None if there are none.

    They are those of data up: at the phone, only these include the whole path.
    """
    time = ((pl.col("time_ns") - begin_ns(trace)) / NS).alias("time_s")
    found = (
        trace.read("rtt")
        .filter((pl.col("level") == "tcp") & (pl.col("direction") == "up"))
        .pipe(with_network, trace)
        .select("network", time, "rtt_ms", "weight")
        .sort("time_s", maintain_order=True)
    )
    return None if found.is_empty() else CellRtts(trace, found)


def paint(axes: Axes, cell: CellRtts, colours: dict[str, str]) -> None:
    """Draw a point per sample."""
    for network in cell.networks:
        shown = thinned(cell.samples.filter(pl.col("network") == network), MAX_POINTS)
        axes.plot(
            shown["time_s"].to_numpy(),
            shown["rtt_ms"].to_numpy(),
            linestyle="none",
            marker=".",
            markersize=4.0,
            color=colours[network],
            alpha=0.7,
        )


def legend(_: Sequence[CellRtts], colours: dict[str, str]) -> list[Line2D]:
    """Return an entry per network that has samples."""
    return [
        Line2D([], [], linestyle="none", marker=".", color=colour, label=network_title(name))
        for name, colour in colours.items()
    ]


def colours_of(cells: Sequence[CellRtts]) -> dict[str, str]:
    """Return network → colour of the networks that have samples, WiFi first."""
    names = sorted({name for cell in cells for name in cell.networks}, key=lambda name: (name != "wifi", name))
    known = network_colours(names)
    return {name: known[name] for name in names}


FIGURE = TraceFigure(
    order=22,
    shape=CellsOverTime(
        title="Round trips over time",
        paper="",
        y=Axis("Round-trip time", "ms"),
        data=samples,
        paint=paint,
        colours=colours_of,
        legend=legend,
        rows=CellRtts.rows,
        columns=COLUMNS,
        caption="Round trips of data up, in the first ok cell of each transport.",
        nothing="no subflow has round trips of data up",
    ),
)
