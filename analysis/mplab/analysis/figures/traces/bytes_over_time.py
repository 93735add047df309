"""Plot the bytes of each network over time, in one cell of each transport, with the changes of the paths."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import TraceFigure
from mplab.analysis.figures.run_traces import CellTrace, with_network
from mplab.analysis.figures.shapes.cdf import Floats
from mplab.analysis.figures.shapes.cells import CellsOverTime
from mplab.analysis.figures.shapes.common import Axis, network_colours, network_title, thinned
from mplab.analysis.figures.shapes.connection import AGAIN
from mplab.analysis.figures.style import INK, LINE_WIDTH, QUIET
from mplab.analysis.record.tables import PROXY, Tables
from mplab.analysis.scores.changes import Handover, handovers

COLUMNS = ("cell", "scenario", "link", "transport", "network", "kind", "time_s", "bytes")
NS = 1e9
MAX_STEPS = 300
MAX_MARKS = 150
"""Maximum number of marks for retransmissions, and for reinjections, in a facet; the CSV has all of them."""

OUTAGE_ALPHA = 0.13
Curves = dict[str, tuple[Floats, Floats]]
BYTES = Axis("New payload since the start", "bytes")


def begin_ns(trace: CellTrace) -> int:
    """Return the time of the cell's first packet, Unix nanoseconds; 0 without packets."""
    return int(trace.tables["connections"].select(pl.col("start_ns").min()).item() or 0)


def curves(trace: CellTrace, zero_ns: int | None = None, until_s: float = 0.0) -> Curves:
    """Return network → (times in s, cumulative bytes of all its subflows).

    The source is the table ``points`` (time-sequence diagrams), which shows when nothing arrived. If it is empty, the
    source is the table ``throughput``; the bytes of each of its time windows are spread evenly over the window.

    Args:
        trace: the cell.
        zero_ns: zero of the times; by default the first packet of the cell.
        until_s: the curves last at least until this time, s.
    """
    zero = begin_ns(trace) if zero_ns is None else zero_ns
    return _stepped(trace, zero, until_s) or _ramped(trace, zero, until_s)


def _stepped(trace: CellTrace, zero_ns: int, until_s: float) -> Curves:
    points = trace.read("points").filter(pl.col("kind") == "data")
    if points.is_empty():
        return {}
    timed = with_network(points, trace).select("network", "bytes", time=(pl.col("time_ns") - zero_ns) / NS)
    times = _grid(timed["time"], timed["time"], until_s)
    by_network = {}
    for network, own in _networks(timed):
        ordered = own.sort("time")
        totals = np.concatenate(([0.0], ordered["bytes"].cast(pl.Float64).cum_sum().to_numpy()))
        by_network[network] = times, totals[np.searchsorted(ordered["time"].to_numpy(), times, side="right")]
    return by_network


def _ramped(trace: CellTrace, zero_ns: int, until_s: float) -> Curves:
    windows = trace.read("throughput").filter(pl.col("level") == "tcp").pipe(with_network, trace)
    if windows.is_empty():
        return {}
    timed = windows.select(
        "network",
        "bytes",
        start=(pl.col("start_ns") - zero_ns) / NS,
        end=(pl.col("start_ns") - zero_ns) / NS + pl.col("duration_s"),
    )
    times = _grid(timed["start"], timed["end"], until_s)
    shortest = (times[-1] - times[0]) / MAX_STEPS / 2
    by_network = {}
    for network, own in _networks(timed):
        start, end, size = (own[name].cast(pl.Float64).to_numpy() for name in ("start", "end", "bytes"))
        by_network[network] = times, _spread(times, start, np.maximum(end, start + shortest), size)
    return by_network


def _grid(starts: pl.Series, ends: pl.Series, until_s: float) -> Floats:
    """Return `MAX_STEPS` evenly spaced times, s, for the time axis.

    The axis begins at 0 or at the first start, if that is earlier. It ends at the last end or at ``until_s``, if that
    is later.
    """
    first, last = starts.to_numpy().min(), ends.to_numpy().max()
    return np.linspace(min(0.0, first), max(last, until_s), MAX_STEPS)


def _networks(rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield (network, its rows) of each network, WiFi first."""
    ordered = rows.sort(pl.col("network") != "wifi", "network")
    for (network,), own in ordered.group_by("network", maintain_order=True):
        yield str(network), own


def _spread(times: Floats, start: Floats, end: Floats, size: Floats) -> Floats:
    """Return the cumulative bytes at each time; the bytes of a window (``size``) are spread evenly over the window."""
    edges = np.concatenate((start, end))
    rates = np.concatenate((size / (end - start), -size / (end - start)))
    order = np.argsort(edges, kind="stable")
    edges, rate = edges[order], np.cumsum(rates[order])
    totals = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(edges))))
    return np.asarray(np.interp(times, edges, totals, left=0.0), dtype=np.float64)


def sent_again(trace: CellTrace, zero_ns: int | None = None) -> pl.DataFrame:
    """Return a cell's retransmissions and reinjections, sorted by time.

    Columns: ``network``, ``kind`` (of `AGAIN`), ``cause``, ``time_s``, ``bytes``, ``direction``.

    Each direction comes from its sender's capture: the phone can miss the first or the second copy. Without tables of
    the proxy, both directions come from the phone's capture.
    """
    zero = begin_ns(trace) if zero_ns is None else zero_ns
    proxy = _at_proxy(trace)
    if proxy is None:
        return pl.concat(_again(trace.read, _flows(trace.tables), zero)).sort("time_s", maintain_order=True)
    sides = [
        frame.filter(pl.col("direction") == direction)
        for direction, read, flows in (
            ("up", trace.read, _flows(trace.tables)),
            ("down", proxy.__getitem__, _flows(proxy, trace.tables)),
        )
        for frame in _again(read, flows, zero)
    ]
    return pl.concat(sides).sort("time_s", maintain_order=True)


def _at_proxy(trace: CellTrace) -> Tables | None:
    folder = trace.tables.folder
    tables = Tables(folder / PROXY) if folder is not None else None
    return tables if tables is not None and tables.exist else None


def _flows(tables: Tables, phone: Tables | None = None) -> pl.DataFrame:
    """Return ``connection_id``, ``subflow_id`` and ``network`` of each subflow.

    Args:
        tables: tables with the subflows.
        phone: the phone's tables, for captures of another host: the network is looked up there by ports and addresses.
    """
    if phone is None:
        return tables["subflows"].select("connection_id", "subflow_id", "network")
    ports = ["client", "client_port", "server", "server_port"]
    known = phone["subflows"].select(*ports, "network").unique(ports, keep="first", maintain_order=True)
    return tables["subflows"].drop("network").join(known, on=ports).select("connection_id", "subflow_id", "network")


def _again(read: Callable[[str], pl.DataFrame], flows: pl.DataFrame, zero_ns: int) -> Iterator[pl.DataFrame]:
    time = ((pl.col("time_ns") - zero_ns) / NS).alias("time_s")
    for kind, table, subflow in (
        ("retransmission", "retransmissions", "subflow_id"),
        ("reinjection", "reinjections", "to_subflow"),
    ):
        theirs, own = ["connection_id", "subflow_id"], ["connection_id", subflow]
        rows = read(table).join(flows, left_on=own, right_on=theirs, maintain_order="left")
        yield rows.select("network", pl.lit(kind).alias("kind"), "cause", time, "bytes", "direction")


@dataclass(frozen=True)
class FacetData:
    """Data of the facet of one cell; its times are relative to ``zero_ns`` (Unix nanoseconds)."""

    trace: CellTrace
    curves: Curves
    again: pl.DataFrame
    zero_ns: int

    @property
    def last_s(self) -> float:
        """Return the last time of the curves, seconds since `zero_ns`."""
        return max(float(times[-1]) for times, _ in self.curves.values())

    def since_begin_s(self, unix_s: float) -> float:
        """Convert Unix seconds to seconds since `zero_ns`, the unit of the time axis."""
        return unix_s - self.zero_ns / NS

    @property
    def handovers(self) -> list[Handover]:
        """Return the hand-overs that start before the end of the curves."""
        end_s = self.last_s + self.zero_ns / NS
        return [handover for handover in handovers(self.trace.changes, end_s) if handover.change.time_s < end_s]

    def rows(self) -> Iterator[tuple[object, ...]]:
        """Yield the rows of the facet in the CSV file: curves, data sent again, and changes of the paths."""
        trace = self.trace
        labels = (trace.name, trace.scenario, trace.link, trace.transport)
        for network, (x, y) in self.curves.items():
            yield from ((*labels, network, "new", float(a), round(float(b))) for a, b in zip(x, y, strict=True))
        for network, kind, cause, time_s, size, direction in self.again.iter_rows():
            yield (*labels, network, f"{kind} {direction} ({cause})", time_s, size)
        for change in trace.changes:
            kind = f"{change.what} (outage {change.outage})" if change.outage else change.what
            yield (*labels, change.network, kind, self.since_begin_s(change.time_s), 0)


def facet_of(trace: CellTrace, zero_ns: int | None = None, until_s: float = 0.0) -> FacetData | None:
    """Return the data of a cell's facet, or None if its subflows carried no payload; arguments as for `curves`."""
    zero = begin_ns(trace) if zero_ns is None else zero_ns
    by_network = curves(trace, zero, until_s)
    return FacetData(trace, by_network, sent_again(trace, zero), zero) if by_network else None


def paint(axes: Axes, facet: FacetData, colours: dict[str, str]) -> None:
    """Draw the changes of the paths, and the curves with crosses at retransmissions and reinjections."""
    paint_changes(axes, facet, colours)
    for network, (x, y) in facet.curves.items():
        axes.plot(x, y, color=colours[network], linewidth=LINE_WIDTH)
        for kind, (marker, colour) in AGAIN.items():
            own = facet.again.filter((pl.col("network") == network) & (pl.col("kind") == kind))
            times = thinned(own, MAX_MARKS)["time_s"].to_numpy()
            axes.plot(times, np.interp(times, x, y), linestyle="none", marker=marker, color=colour, markersize=4.0)


def paint_changes(axes: Axes, facet: FacetData, colours: dict[str, str]) -> None:
    """Draw outages as bands in the colour of their network, and other changes as lines."""
    for handover in facet.handovers:
        begin_s, end_s = facet.since_begin_s(handover.change.time_s), facet.since_begin_s(handover.end_s)
        colour = colours[handover.change.network]
        if handover.gone:
            axes.axvspan(begin_s, end_s, color=colour, alpha=OUTAGE_ALPHA, linewidth=0)
        axes.axvline(
            begin_s, color=colour if handover.gone else INK, linewidth=0.8, linestyle="-" if handover.gone else "--"
        )
    for change in facet.trace.changes:
        if not change.outage and 0 <= (time_s := facet.since_begin_s(change.time_s)) <= facet.last_s:
            axes.axvline(time_s, color=QUIET, linewidth=0.5, linestyle=":")


def colours_of(facets: Sequence[FacetData]) -> dict[str, str]:
    """Return network → colour, for all networks that carried bytes or whose path was changed."""
    carried = [network for facet in facets for network in facet.curves]
    return network_colours([*carried, *(change.network for s in facets for change in s.trace.changes)])


def legend(facets: Sequence[FacetData], colours: dict[str, str]) -> list[Artist]:
    """Return the legend entries of the facets."""
    shown = list(dict.fromkeys(network for facet in facets for network in facet.curves))
    handles: list[Artist] = [
        Line2D([], [], color=colours[name], linewidth=LINE_WIDTH, label=network_title(name)) for name in shown
    ]
    kinds = {kind for facet in facets for kind in facet.again["kind"].unique()}
    handles += [
        Line2D([], [], linestyle="none", marker=marker, color=colour, markersize=4.0, label=kind.capitalize())
        for kind, (marker, colour) in AGAIN.items()
        if kind in kinds
    ]
    lost = dict.fromkeys(h.change.network for facet in facets for h in facet.handovers if h.gone)
    handles += [
        Patch(color=colours[name], alpha=OUTAGE_ALPHA * 2, linewidth=0, label=f"{network_title(name)} gone")
        for name in lost
    ]
    if any(not h.gone for facet in facets for h in facet.handovers):
        handles.append(Line2D([], [], color=INK, linewidth=0.8, linestyle="--", label="Other path preferred"))
    if any(not change.outage for facet in facets for change in facet.trace.changes):
        handles.append(Line2D([], [], color=QUIET, linewidth=0.8, linestyle=":", label="Path changed"))
    return handles


FIGURE = TraceFigure(
    order=5,
    in_report=True,
    shape=CellsOverTime(
        title="Bytes per network over time",
        paper="baerts2015 fig. 6.5, 6.8, 6.9, 6.10, 6.11",
        y=BYTES,
        data=facet_of,
        paint=paint,
        colours=colours_of,
        legend=legend,
        rows=FacetData.rows,
        columns=COLUMNS,
        nothing="no subflow carried payload",
        caption=(
            "New payload of both directions, in the first ok cell of each transport; crosses are data sent again, each "
            "direction as its sender saw it; bands are times in which the path could not be used."
        ),
    ),
)
