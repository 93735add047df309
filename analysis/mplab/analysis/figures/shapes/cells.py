"""Draw one cell of each transport over time, with the same axes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from mplab.analysis.figures.run_traces import CellTrace, Traces
from mplab.analysis.figures.shapes.common import Axis, NoDataError, paged
from mplab.analysis.figures.style import Canvas, Drawing, facet_rows, text_size, title_below
from mplab.analysis.text import slug

TIME = Axis("Time", "s")
"""Axis of the time since the first packet of a cell."""


class OfCell(Protocol):
    """Data of one cell; its times are seconds since the first packet."""

    @property
    def trace(self) -> CellTrace:
        """Return the trace of the cell."""


Data = TypeVar("Data", bound=OfCell)


@dataclass(frozen=True)
class CellsOverTime(Generic[Data]):
    """A figure with a facet per example cell: the first of each transport, under each scenario and link condition.

    Attributes:
        y: axis that all facets share.
        data: returns the data of a cell, or None if there are none.
        paint: draws the data of a cell; the colours are those of ``colours``.
        colours: returns network → colour for the cells of a drawing.
        legend: returns the entries of the legend.
        rows: yields the rows of a cell in the CSV file.
        columns: columns of the CSV file.
        nothing: message when no cell has data.
        ticks: ticks of the y axis, and their names; None: by ``y``.
    """

    title: str
    paper: str
    y: Axis
    data: Callable[[CellTrace], Data | None]
    paint: Callable[[Axes, Data, dict[str, str]], None]
    colours: Callable[[Sequence[Data]], dict[str, str]]
    legend: Callable[[Sequence[Data], dict[str, str]], Sequence[Artist]]
    rows: Callable[[Data], Iterable[tuple[object, ...]]]
    columns: Sequence[str]
    caption: str
    nothing: str
    ticks: Mapping[float, str] | None = None

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per scenario and link condition. Raises NoDataError when there is nothing to draw."""
        by_place: dict[tuple[str, str], list[Data]] = {}
        for trace in traces.one_per_transport():
            if (data := self.data(trace)) is not None:
                by_place.setdefault((trace.scenario, trace.link), []).append(data)
        if not by_place:
            raise NoDataError(self.nothing)
        pages = [page for cells in by_place.values() for _, page in paged(name, cells)]
        for number, page in enumerate(pages, 1):
            yield self._page(slug("trace", name, str(number) if number > 1 else ""), page, traces, len(by_place) > 1)

    def _page(self, stem: str, cells: Sequence[Data], traces: Traces, several: bool) -> Drawing:
        titles = {transport.label: transport.title for transport in traces.transports}
        place = cells[0].trace
        title = f"{self.title}: {place.scenario} · {place.link}" if several else self.title
        colours = self.colours(cells)
        with Canvas(title, 0.6 + 1.9 * facet_rows(len(cells))) as canvas:
            all_axes = canvas.facets(len(cells), sharex=True, sharey=True)
            for axes, data in zip(all_axes, cells, strict=True):
                axes.set_title(titles[data.trace.transport], fontsize=text_size(8.5))
                self.paint(axes, data, colours)
                TIME.dress(axes, "x")
                if self.ticks is None:
                    self.y.dress(axes, "y")
                    axes.set_ylim(bottom=0)
                else:
                    axes.set_yticks(list(self.ticks), list(self.ticks.values()))
                axes.set_ylabel("")
                axes.label_outer()
            all_axes[-1].set_xlim(left=0)
            title_below(canvas, all_axes)
            if self.ticks is None:
                canvas.figure.supylabel(self.y.label, fontsize="medium")
            canvas.legend(self.legend(cells, colours))
            svg = canvas.svg(stem)
        return Drawing(
            stem, "traces", title, self.caption, svg, self.columns, [r for data in cells for r in self.rows(data)]
        )
