"""Draw scatter plots of two quantities of connections."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import Axis, FigurePanel, handle, pages, series_of, thinned
from mplab.analysis.figures.style import Canvas, Drawing, facet_rows, title_below

MAX_POINTS = 1500
COLUMNS = ("scenario", "link", "transport", "cell", "connection_id", "x", "y")


@dataclass(frozen=True)
class Scatter:
    """A figure with a point per connection; ``values`` returns the columns ``connection_id``, ``x`` and ``y``."""

    title: str
    paper: str
    x: Axis
    y: Axis
    caption: str
    values: Callable[[Traces], pl.DataFrame]
    nothing: str

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of facets. Raises NoDataError when there is nothing to draw."""
        for stem, panels in pages(name, self.values(traces), traces, {"x": self.x, "y": self.y}, self.nothing):
            yield self._page(stem, panels)

    def _page(self, stem: str, panels: Sequence[FigurePanel]) -> Drawing:
        rows = []
        with Canvas(self.title, 0.7 + 2.5 * facet_rows(len(panels))) as canvas:
            all_axes = canvas.facets(len(panels), sharex=True, sharey=True)
            for axes, panel in zip(all_axes, panels, strict=True):
                axes.set_title(panel.title)
                for series, own in panel.series:
                    shown = thinned(own, MAX_POINTS)
                    look = series.transport
                    axes.plot(
                        shown["x"].to_numpy(),
                        shown["y"].to_numpy(),
                        linestyle="none",
                        marker=look.marker,
                        markersize=4.0,
                        color=look.colour,
                        markeredgewidth=0.0,
                        alpha=0.6,
                    )
                    labels = (panel.scenario, panel.link, look.label)
                    rows += [(*labels, *row) for row in own.select("cell", "connection_id", "x", "y").iter_rows()]
                self.x.dress(axes, "x")
                self.y.dress(axes, "y")
                axes.label_outer()
            title_below(canvas, all_axes)
            canvas.legend([handle(series, "", marker=True) for series in series_of(panels)])
            svg = canvas.svg(stem)
        return Drawing(stem, "traces", self.title, self.caption, svg, COLUMNS, rows)
