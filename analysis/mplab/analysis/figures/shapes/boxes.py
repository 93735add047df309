"""Draw box plots, per transport or per class of another quantity."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis, FigurePanel, FigureSeries, pages
from mplab.analysis.figures.style import Canvas, Drawing, facet_columns, facet_rows, name_rows

COLUMNS = ("scenario", "link", "transport", "class", "cell", "connection_id", "value")


@dataclass(frozen=True)
class Boxes:
    """A figure with a box per transport and class.

    ``values`` returns the columns ``connection_id`` and ``value``, and for several classes ``variant``.
    """

    title: str
    paper: str
    axis: Axis
    values: Callable[[Traces], pl.DataFrame]
    nothing: str
    caption: str = "Box: quartiles and median; whiskers: within 1.5 times their distance. In brackets: connections."

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of facets. Raises NoDataError when there is nothing to draw."""
        for stem, panels in pages(name, self.values(traces), traces, {"value": self.axis}, self.nothing):
            yield self._page(stem, panels)

    def _page(self, stem: str, panels: Sequence[FigurePanel]) -> Drawing:
        rows = []
        most = max(len(panel.series) for panel in panels)
        with Canvas(self.title, (0.7 + 0.3 * most) * facet_rows(len(panels), named_rows=True)) as canvas:
            for index, (axes, panel) in enumerate(
                zip(canvas.facets(len(panels), sharex=True, named_rows=True), panels, strict=True)
            ):
                axes.set_title(panel.title)
                own = [frame["value"].to_numpy() for _, frame in panel.series]
                drawn = axes.boxplot(
                    own, orientation="horizontal", widths=0.6, patch_artist=True, manage_ticks=False, showfliers=False
                )
                for patch, line, (series, _) in zip(drawn["boxes"], drawn["medians"], panel.series, strict=True):
                    patch.set(facecolor=series.transport.colour + "40", edgecolor=series.transport.colour)
                    line.set(color=series.transport.colour, linewidth=2.2)
                names = [
                    f"{_name(series)} ({values.size})" for (series, _), values in zip(panel.series, own, strict=True)
                ]
                name_rows(axes, names, first=1)
                self.axis.dress(axes, "x")
                if index % facet_columns(named_rows=True):
                    axes.set_ylabel("")
                for series, frame in panel.series:
                    labels = (panel.scenario, panel.link, series.transport.label, series.variant)
                    rows += [(*labels, *row) for row in frame.select("cell", "connection_id", "value").iter_rows()]
            svg = canvas.svg(stem)
        return Drawing(stem, "traces", self.title, self.caption, svg, COLUMNS, rows)


def _name(series: FigureSeries) -> str:
    """Return the title of a box without the sort key of its class: ``1|below 10 kB`` → ``below 10 kB``."""
    return series.title.replace(series.variant, series.variant.rpartition("|")[2]) if series.variant else series.title
