"""Draw cumulative distributions, plain or weighted, and densities."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

from mplab.analysis.figures.run_traces import Traces
from mplab.analysis.figures.shapes.common import (
    Axis,
    FigurePanel,
    handle,
    legend_columns,
    pages,
    series_of,
    variants,
)
from mplab.analysis.figures.style import LINE_WIDTH, Canvas, Drawing, facet_rows, share_axis, title_below

Floats: TypeAlias = NDArray[np.float64]
MAX_STEPS = 400
DENSITY_BINS = 60
COLUMNS = ("scenario", "link", "transport", "variant", "value", "cumulative_share")
DENSITY_COLUMNS = ("scenario", "link", "transport", "variant", "value", "density")


def weighted_cdf(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values, ascending, and for each the share of the weight at or below it, 0 … 1."""
    order = np.argsort(values, kind="stable")
    unique, first = np.unique(values[order], return_index=True)
    weight = np.add.reduceat(weights[order], first)
    cumulative = np.cumsum(weight)
    return unique, cumulative / cumulative[-1]


def thin_steps(x: Floats, y: Floats, most: int = MAX_STEPS) -> tuple[Floats, Floats]:
    """Reduce a cumulative distribution to about ``most`` steps, evenly spaced in y; the first and the last are kept."""
    if x.size <= most:
        return x, y
    keep = np.unique(np.searchsorted(y, np.linspace(y[0], y[-1], most)).clip(0, x.size - 1))
    keep = np.unique(np.concatenate(([0], keep, [x.size - 1])))
    return x[keep], y[keep]


def density(values: Floats, weights: Floats, *, log: bool) -> tuple[Floats, Floats]:
    """Return the histogram of the values: the middle of each bin, and the share of the total weight in it, 0 … 1.

    There are `DENSITY_BINS` bins of equal width. With ``log``, their width is equal on a logarithmic axis; all values
    must then be above 0.
    """
    numbers = np.log10(values) if log else values
    counts, edges = np.histogram(numbers, np.linspace(*_limits(numbers), DENSITY_BINS + 1), weights=weights)
    middles = (edges[1:] + edges[:-1]) / 2
    return (10**middles if log else middles), counts / counts.sum()


def _limits(values: Floats) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


@dataclass(frozen=True)
class Cdf:
    """A figure of distributions: a curve per transport and variant, a facet per scenario and link.

    ``values`` returns a column ``value``, optionally ``weight`` and ``variant``, with the labels of `Traces.pooled`. It
    raises `NoDataError`, or returns no row, when there are no data.
    """

    title: str
    paper: str
    axis: Axis
    share: str
    """Title of the y axis."""
    caption: str
    values: Callable[[Traces], pl.DataFrame]
    nothing: str
    """Message with the reason why the figure is left out when there are no values."""
    kind: Literal["cdf", "density"] = "cdf"
    section: Literal["traces", "paper"] = "traces"
    """``paper``: the figure reproduces a figure of a paper from scores."""

    def draw(self, name: str, traces: Traces) -> Iterator[Drawing]:
        """Yield a drawing per page of facets. Raises NoDataError when there is nothing to draw."""
        kind = "paper" if self.section == "paper" else "trace"
        for stem, panels in pages(name, self.values(traces), traces, {"value": self.axis}, self.nothing, kind=kind):
            yield self._page(stem, panels)

    def _page(self, stem: str, panels: Sequence[FigurePanel]) -> Drawing:
        everything = series_of(panels)
        dashes = variants(everything)
        rows: list[tuple[object, ...]] = []
        with Canvas(self.title, 0.4 + 0.16 * len(everything) + 2.2 * facet_rows(len(panels))) as canvas:
            all_axes = canvas.facets(len(panels), sharex=True, sharey=True)
            for axes, panel in zip(all_axes, panels, strict=True):
                axes.set_title(panel.title)
                for series, own in panel.series:
                    x, y = self._curve(own)
                    self._line(axes, x, y, series.transport.colour, dashes[series.variant])
                    labels = (panel.scenario, panel.link, series.transport.label, series.variant)
                    rows += [(*labels, float(a), float(b)) for a, b in zip(x, y, strict=True)]
                self.axis.dress(axes, "x")
                axes.label_outer()
                if self.kind == "cdf":
                    share_axis(axes)
            canvas.figure.supylabel(self.share, fontsize="medium")
            title_below(canvas, all_axes)
            handles = [handle(series, dashes[series.variant]) for series in everything]
            canvas.legend(handles, columns=legend_columns(handles))
            svg = canvas.svg(stem)
        columns = COLUMNS if self.kind == "cdf" else DENSITY_COLUMNS
        return Drawing(stem, self.section, self.title, self.caption, svg, columns, rows)

    def _curve(self, own: pl.DataFrame) -> tuple[Floats, Floats]:
        values = own["value"].cast(pl.Float64).to_numpy()
        weights = own["weight"].cast(pl.Float64).to_numpy() if "weight" in own.columns else np.ones(own.height)
        if self.kind == "density":
            return density(values, weights, log=self.axis.scale == "log")
        return thin_steps(*weighted_cdf(values, weights))

    def _line(self, axes: Axes, x: Floats, y: Floats, colour: str, dashes: str) -> None:
        if self.kind == "density":
            axes.plot(x, y, drawstyle="steps-mid", linewidth=LINE_WIDTH, color=colour, linestyle=dashes)
            return
        steps = np.concatenate((x[:1], x)), np.concatenate(([0.0], y))
        axes.step(*steps, where="post", linewidth=LINE_WIDTH, color=colour, linestyle=dashes)
