"""Draw a quantity by classes (file sizes, sites, places of the proxy) and transports: quartiles and every value."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError, paged
from mplab.analysis.figures.style import (
    GRID,
    LINE_WIDTH,
    MARKER_SIZE,
    Canvas,
    Drawing,
    facet_columns,
    facet_rows,
    name_rows,
    title_below,
)
from mplab.format.experiment import TransportRecord

COLUMNS = ("facet", "class", "transport", "cell", "value")
READING = "{mark}: median; line: quartiles; points: cells ({cells} each)."
LEGEND_COLUMNS = 3
ROW_IN, GAP_IN = 0.115, 0.12
"""Height of one transport's mark, and of the gap between two classes, inches."""


@dataclass(frozen=True)
class Classes:
    """A figure with a row per class of values, such as a file size, and in each row a mark per transport.

    The mark is a bar from zero to the median; on a logarithmic axis, it is a point at the median.


    ``values`` returns the columns of `COLUMNS`, with facets and classes in the order of the figure. It raises
    `NoDataError`, or returns no row, when there are no data.
    """

    title: str
    paper: str
    axis: Axis
    caption: str
    values: Callable[[Traces], pl.DataFrame]
    nothing: str
    one_scale: bool = True
    """True: all facets have the same axis of values."""
    section: Literal["traces", "paper"] = "paper"
    """``paper``: the figure reproduces a figure of a paper from scores."""

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of facets. Raises NoDataError when there is nothing to draw."""
        frame = self.values(traces)
        shown = frame if frame.is_empty() else frame.filter(self.axis.shows("value"))
        if shown.is_empty():
            raise NoDataError(self.nothing)
        facets = shown["facet"].unique(maintain_order=True).to_list()
        for stem, page in paged(name, facets, "paper" if self.section == "paper" else "trace"):
            yield self._page(stem, page, shown.filter(pl.col("facet").is_in(page)), traces.transports)

    def _page(self, stem: str, facets: Sequence[str], shown: pl.DataFrame, known: Sequence[TransportRecord]) -> Drawing:
        there = set(shown["transport"])
        transports = [transport for transport in known if transport.label in there]
        classes = shown["class"].unique(maintain_order=True).to_list()
        height = 0.75 + (ROW_IN * len(transports) + GAP_IN) * len(classes)
        with Canvas(self.title, 0.25 + height * facet_rows(len(facets))) as canvas:
            all_axes = canvas.facets(len(facets), sharex=self.one_scale, sharey=True)
            for index, (axes, facet) in enumerate(zip(all_axes, facets, strict=True)):
                axes.set_title(facet)
                own = shown.filter(pl.col("facet") == facet)
                for row, class_ in enumerate(classes):
                    for offset, transport in zip(_offsets(len(transports)), transports, strict=True):
                        chosen = (pl.col("class") == class_) & (pl.col("transport") == transport.label)
                        self._mark(axes, row + offset, 0.8 / len(transports), transport, own.filter(chosen)["value"])
                name_rows(axes, classes)
                for row in range(1, len(classes)):
                    axes.axhline(row - 0.5, color=GRID, linewidth=0.8, zorder=0)
                axes.tick_params(axis="y", labelleft=index % facet_columns() == 0)
                if self.axis.scale == "linear":
                    axes.set_xlim(left=0)
                self.axis.dress(axes, "x")
            title_below(canvas, all_axes)
            canvas.legend([self._handle(transport) for transport in transports], columns=LEGEND_COLUMNS)
            svg = canvas.svg(stem)
        return Drawing(stem, self.section, self.title, self._caption(shown), svg, COLUMNS, shown.select(COLUMNS).rows())

    def _mark(self, axes: Axes, y: float, height: float, transport: TransportRecord, values: pl.Series) -> None:
        if values.is_empty():
            return
        low, middle, high = (float(q) for q in np.quantile(values.to_numpy(), (0.25, 0.5, 0.75)))
        colour, bars = transport.colour, self.axis.scale == "linear"
        if bars:
            axes.barh(y, middle, height=height * 0.92, color=colour + "80", edgecolor=colour, linewidth=0.8)
        axes.plot([low, high], [y, y], color=colour, linewidth=LINE_WIDTH + 0.6, solid_capstyle="butt", zorder=3)
        axes.plot(values, [y] * len(values), linestyle="none", marker=".", color=colour, markersize=3, alpha=0.6)
        if not bars:
            (mark,) = axes.plot([middle], [y], marker=transport.marker, color=colour, markersize=MARKER_SIZE + 0.5)
            mark.set(markeredgecolor="white", markeredgewidth=0.6, zorder=4)

    def _handle(self, transport: TransportRecord) -> Artist:
        colour = transport.colour
        if self.axis.scale == "linear":
            return Patch(facecolor=colour + "80", edgecolor=colour, linewidth=0.8, label=transport.title)
        return Line2D([], [], color=colour, marker=transport.marker, linewidth=LINE_WIDTH, label=transport.title)

    def _caption(self, shown: pl.DataFrame) -> str:
        counts = shown.group_by("facet", "class", "transport").len()["len"].to_list()
        least, most = min(counts), max(counts)
        cells = f"n = {least}" if least == most else f"n = {least} to {most}"
        mark = "Bar" if self.axis.scale == "linear" else "Mark"
        return f"{self.caption} {READING.format(mark=mark, cells=cells)}"


def _offsets(count: int) -> list[float]:
    """Return the y offset of each transport within the row of a class, the first at the top."""
    step = 0.8 / count
    return [step * (index - (count - 1) / 2) for index in range(count)]
