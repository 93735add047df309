"""Plot when packets were on each network, in one cell of each transport (deng2014 fig. 15)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CellTrace, with_network
from mplab.analysis.figures.shapes.cells import CellsOverTime
from mplab.analysis.figures.shapes.common import Axis, network_colours, network_title, thinned
from mplab.analysis.figures.style import INK
from mplab.analysis.figures.traces.bytes_over_time import NS, FacetData, begin_ns, facet_of, paint_changes

MAX_PACKETS = 1500
"""Maximum number of packets of a network that are drawn in a facet; the CSV has all points of the table."""

ENDS = {"syn": ("^", "SYN"), "fin": ("v", "FIN"), "rst": ("X", "RST")}
NETWORKS = ("wifi", "cellular")
LANES = {network: float(-row) for row, network in enumerate(NETWORKS)}
COLUMNS = ("cell", "scenario", "link", "transport", "network", "kind", "time_s")


@dataclass(frozen=True)
class CellPackets:
    """Packets of a cell: the columns ``network``, ``kind`` (data, ack, syn, fin, rst) and ``time_s``.

    ``changes`` has the changes of the paths; None: no subflow carried payload.
    """

    trace: CellTrace
    packets: pl.DataFrame
    changes: FacetData | None

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the cell in the CSV file."""
        trace = self.trace
        for row in self.packets.iter_rows():
            yield (trace.name, trace.scenario, trace.link, trace.transport, *row)


def packets(trace: CellTrace) -> CellPackets | None:
    """Return the packets of a cell on WiFi and LTE, sorted by time; None if there are none.

    Data and acknowledgements are the points of time-sequence diagrams, which long connections have thinned; SYN, FIN
    and RST are events, and whole.
    """
    time = ((pl.col("time_ns") - begin_ns(trace)) / NS).alias("time_s")
    points = trace.read("points").filter(pl.col("kind") != "window").pipe(with_network, trace)
    kind = pl.when(pl.col("kind") == "ack").then(pl.lit("ack")).otherwise(pl.lit("data")).alias("kind")
    ends = trace.read("events").filter(pl.col("event").is_in(ENDS)).pipe(with_network, trace)
    found = pl.concat(
        [points.select("network", kind, time), ends.select("network", pl.col("event").alias("kind"), time)]
    )
    found = found.filter(pl.col("network").is_in(NETWORKS)).sort("time_s", maintain_order=True)
    return None if found.is_empty() else CellPackets(trace, found, facet_of(trace))


def paint(axes: Axes, cell: CellPackets, colours: dict[str, str]) -> None:
    """Draw a lane per network: a stroke per packet, and marks at SYN, FIN and RST."""
    if cell.changes is not None:
        paint_changes(axes, cell.changes, colours)
    for network, y in LANES.items():
        own = cell.packets.filter(pl.col("network") == network)
        strokes = thinned(own.filter(~pl.col("kind").is_in(ENDS)), MAX_PACKETS)["time_s"].to_numpy()
        axes.vlines(strokes, y - 0.28, y + 0.28, color=colours[network], linewidth=0.5, alpha=0.6)
        for kind, (marker, _) in ENDS.items():
            times = own.filter(pl.col("kind") == kind)["time_s"].to_numpy()
            axes.plot(times, [y + 0.36] * len(times), linestyle="none", marker=marker, color=INK, markersize=4.0)
    axes.set_ylim(min(LANES.values()) - 0.5, max(LANES.values()) + 0.6)
    axes.grid(visible=False, axis="y")


def legend(cells: Sequence[CellPackets], colours: dict[str, str]) -> list[Line2D]:
    """Return the entries of the networks, and of the marks that occur."""
    kinds = {kind for cell in cells for kind in cell.packets["kind"].unique()}
    there = {network for cell in cells for network in cell.packets["network"].unique()}
    lanes = [
        Line2D([], [], linestyle="none", marker="|", color=colours[name], label=f"Packet on {network_title(name)}")
        for name in NETWORKS
        if name in there
    ]
    marks = [
        Line2D([], [], linestyle="none", marker=marker, color=INK, markersize=4.0, label=title)
        for kind, (marker, title) in ENDS.items()
        if kind in kinds
    ]
    return lanes + marks


FIGURE = TraceFigure(
    order=7,
    shape=CellsOverTime(
        title="Packets on each network",
        paper="deng2014 fig. 15",
        y=Axis("Network"),
        ticks={y: network_title(network) for network, y in LANES.items()},
        data=packets,
        paint=paint,
        colours=lambda _: network_colours(NETWORKS),
        legend=legend,
        rows=CellPackets.rows,
        columns=COLUMNS,
        caption=(
            "A stroke is a packet of either direction, in the first ok cell of each transport; bands are times "
            "in which the path could not be used."
        ),
        nothing="no packet on WiFi or LTE",
    ),
)
