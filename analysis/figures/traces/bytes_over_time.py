"""How much each network has carried by when: one cell of each transport."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from matplotlib.lines import Line2D

from analysis.figures.shapes.cdf import Floats
from analysis.figures.shapes.common import Axis, NoDataError, network_colours, network_title, paged
from analysis.figures.style import LINE_WIDTH, Canvas, Drawing, facet_rows
from analysis.figures.traces.connections import with_network
from analysis.traces import Trace, Traces

ORDER = 5
REPORT = True
COLUMNS = ("cell", "scenario", "link", "transport", "network", "time_s", "bytes")
NS = 1e9
MAX_STEPS = 300
Curves = dict[str, tuple[Floats, Floats]]
TIME, BYTES = Axis("Time", "s"), Axis("New payload so far", "bytes")


def curves(trace: Trace) -> Curves:
    """Per network, times (s, since the first packet of the cell) and bytes of all its subflows until then.

    Within a window of the throughput table, bytes are spread evenly.
    """
    windows = trace.read("throughput").filter(pl.col("level") == "tcp").pipe(with_network, trace)
    if windows.is_empty():
        return {}
    begin = trace.tables["connections"]["start_ns"].min()
    timed = windows.select(
        "network",
        "bytes",
        start=(pl.col("start_ns") - begin) / NS,
        end=(pl.col("start_ns") - begin) / NS + pl.col("duration_s"),
    )
    last = float(timed["end"].max() or 0.0)  # type: ignore[arg-type]
    times = np.linspace(0.0, last, MAX_STEPS)
    found = {}
    wifi_first = timed.sort(pl.col("network") != "wifi", "network")
    for (network,), own in wifi_first.group_by("network", maintain_order=True):
        start, end, size = (own[name].cast(pl.Float64).to_numpy() for name in ("start", "end", "bytes"))
        found[str(network)] = times, _spread(times, start, np.maximum(end, start + last / MAX_STEPS / 2), size)
    return found


def _spread(times: Floats, start: Floats, end: Floats, size: Floats) -> Floats:
    """Bytes until each time: the sum of windows' ramps, as the integral of the rates that begin and end."""
    edges = np.concatenate((start, end))
    rates = np.concatenate((size / (end - start), -size / (end - start)))
    order = np.argsort(edges, kind="stable")
    edges, rate = edges[order], np.cumsum(rates[order])
    totals = np.concatenate(([0.0], np.cumsum(rate[:-1] * np.diff(edges))))
    return np.asarray(np.interp(times, edges, totals, left=0.0), dtype=np.float64)


@dataclass(frozen=True)
class BytesOverTime:
    """A facet per example cell, a curve per network."""

    title: str
    paper: str
    caption: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """One drawing per page of facets; raises `NoDataError`."""
        found = [(trace, made) for trace in traces.one_per_transport() if (made := curves(trace))]
        if not found:
            raise NoDataError("no subflow carried payload")
        for stem, facets in paged(name, found):
            yield self._page(stem, facets, traces)

    def _page(self, stem: str, found: Sequence[tuple[Trace, Curves]], traces: Traces) -> Drawing:
        titles = {transport.label: transport.title for transport in traces.transports}
        several = len({(trace.scenario, trace.link) for trace, _ in found}) > 1
        colours = network_colours([network for _, made in found for network in made])
        rows = []
        with Canvas(self.title, 0.6 + 2.2 * facet_rows(len(found))) as canvas:
            for axes, (trace, made) in zip(canvas.facets(len(found)), found, strict=True):
                place_text = f"\n{trace.scenario} · {trace.link}" if several else ""
                axes.set_title(titles[trace.transport] + place_text, fontsize=8.5)
                for network, (x, y) in made.items():
                    axes.plot(x, y, color=colours[network], linewidth=LINE_WIDTH)
                    place = (trace.name, trace.scenario, trace.link, trace.transport, network)
                    rows += [(*place, float(a), round(float(b))) for a, b in zip(x, y, strict=True)]
                TIME.dress(axes, "x")
                BYTES.dress(axes, "y")
                axes.set_ylabel("")
            canvas.figure.supylabel(BYTES.title, fontsize=9.0)
            shown = list(dict.fromkeys(network for _, made in found for network in made))
            canvas.legend(
                [Line2D([], [], color=colours[n], linewidth=LINE_WIDTH, label=network_title(n)) for n in shown]
            )
            svg = canvas.svg(stem)
        return Drawing(stem, "traces", self.title, self.caption, svg, COLUMNS, rows)


FIGURE = BytesOverTime(
    title="Bytes per network over time",
    paper="",
    caption="New payload of both directions, in the first ok cell of each transport.",
)
