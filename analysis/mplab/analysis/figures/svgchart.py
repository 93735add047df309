"""Draw a chart of curves, strokes and marks as SVG text, much faster than matplotlib does.

For the pages of cells: a run can have thousands. The chart has no text of the run except its axis labels and title.
Its colours come from the page's style sheet, except those of the curves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from markupsafe import escape
from matplotlib.ticker import MaxNLocator

from mplab.analysis.figures.shapes.cdf import Floats
from mplab.analysis.figures.shapes.common import Axis

WIDTH, HEIGHT = 600, 240
LEFT, RIGHT, TOP, BOTTOM = 76, 12, 10, 42
"""Margins, in units of the drawing."""

MARK = 3.0
"""Half the width of a mark, in units of the drawing."""


@dataclass(frozen=True)
class ChartSeries:
    """Values of a chart in one colour.

    Kinds: ``line``: straight lines between the points; ``step``: the value holds until the next point; ``strokes``:
    vertical lines from ``y`` to ``tops``; ``plus`` and ``cross``: marks.
    """

    title: str
    colour: str
    kind: Literal["line", "step", "strokes", "plus", "cross"]
    x: Floats
    y: Floats
    tops: Floats | None = None


@dataclass(frozen=True)
class Band:
    """A part of the x axis with a coloured background; without width: a vertical line."""

    title: str
    colour: str
    begin: float
    end: float


@dataclass(frozen=True)
class Chart:
    """A chart: axes, series, bands behind them, and the text for screen readers."""

    label: str
    x: Axis
    y: Axis
    series: tuple[ChartSeries, ...]
    bands: tuple[Band, ...] = ()

    @property
    def legend(self) -> list[tuple[str, str, str]]:
        """Return (title, colour, symbol) of each distinct entry of the legend."""
        symbols = {"line": "▬", "step": "▬", "strokes": "▬", "plus": "+", "cross": "×"}
        entries = [(series.title, series.colour, symbols[series.kind]) for series in self.series]
        entries += [(band.title, band.colour, "▮" if band.end > band.begin else "│") for band in self.bands]
        return list(dict.fromkeys(entries))

    def svg(self) -> str:
        """Return the chart as an SVG element for an HTML page."""
        return "".join(_parts(self))


def _parts(chart: Chart) -> Iterator[str]:
    x_low, x_high = _range([series.x for series in chart.series])
    y_low, y_high = _range([values for s in chart.series for values in (s.y, s.tops) if values is not None])
    to_x = _Scale(x_low, x_high, LEFT, WIDTH - RIGHT)
    to_y = _Scale(y_low, y_high, HEIGHT - BOTTOM, TOP)
    yield f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(chart.label)}">'
    for band in chart.bands:
        left, right = (min(max(to_x.at(value), LEFT), WIDTH - RIGHT) for value in (band.begin, band.end))
        size = f'width="{max(right - left, 1):.1f}" height="{HEIGHT - TOP - BOTTOM}"'
        yield f'<rect class="band" x="{left:.1f}" y="{TOP}" {size} fill="{escape(band.colour)}"/>'
    for value in _ticks(y_low, y_high):
        y = to_y.at(value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>'
        yield f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
        yield f"{escape(chart.y.text(value))}</text>"
    for value in _ticks(x_low, x_high):
        x = to_x.at(value)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
        yield f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">'
        yield f"{escape(chart.x.text(value))}</text>"
    yield f'<text class="axis" x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 5}" text-anchor="middle">'
    yield f"{escape(chart.x.label)}</text>"
    yield f'<text class="axis" transform="translate(11 {(TOP + HEIGHT - BOTTOM) / 2:.0f})rotate(-90)" '
    yield f'text-anchor="middle">{escape(chart.y.label)}</text>'
    for series in chart.series:
        tops = to_y.of(series.tops) if series.tops is not None else None
        path = _path(series.kind, to_x.of(series.x), to_y.of(series.y), tops)
        yield f'<path class="{series.kind}" stroke="{escape(series.colour)}" d="{path}"/>'
    yield "</svg>"


@dataclass(frozen=True)
class _Scale:
    """Converts values of an axis, ``low`` to ``high``, to units of the drawing, ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def of(self, values: Floats) -> Floats:
        return np.asarray(self.start + (values - self.low) / (self.high - self.low) * (self.end - self.start))

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _range(all_values: Sequence[Floats]) -> tuple[float, float]:
    """Return the range of an axis that shows all values; it includes 0, and is not empty."""
    low = min((float(values.min()) for values in all_values if values.size), default=0.0)
    high = max((float(values.max()) for values in all_values if values.size), default=0.0)
    low, high = min(low, 0.0), max(high, 0.0)
    return low, high if high > low else low + 1.0


def _ticks(low: float, high: float) -> list[float]:
    return [float(value) for value in MaxNLocator(nbins=5).tick_values(low, high) if low <= value <= high]


def _path(kind: str, x: Floats, y: Floats, tops: Floats | None) -> str:
    """Return the ``d`` attribute of a series; equal points are drawn once."""
    if kind == "line":
        return "M" + " ".join(f"{a:.1f},{b:.1f}" for a, b in _bends(x, y)) if x.size else ""
    if kind == "step":
        points = list(_bends(x, y))
        return f"M{points[0][0]:.1f} {points[0][1]:.1f}" + "".join(f"H{a:.1f}V{b:.1f}" for a, b in points[1:])
    if tops is not None:
        drawn = dict.fromkeys(
            f"M{a:.1f} {b:.1f}V{c:.1f}" for a, b, c in zip(x, y, np.minimum(tops, y - 1.0), strict=True)
        )
    elif kind == "plus":
        drawn = dict.fromkeys(
            f"M{a - MARK:.1f} {b:.1f}h{2 * MARK:g}m-{MARK:g}-{MARK:g}v{2 * MARK:g}" for a, b in zip(x, y, strict=True)
        )
    else:
        drawn = dict.fromkeys(
            f"M{a - MARK:.1f} {b - MARK:.1f}l{2 * MARK:g} {2 * MARK:g}m0-{2 * MARK:g}l-{2 * MARK:g} {2 * MARK:g}"
            for a, b in zip(x, y, strict=True)
        )
    return "".join(drawn)


def _bends(x: Floats, y: Floats) -> Iterator[tuple[float, float]]:
    """Yield the points of a curve without those between two points of the same height."""
    last = x.size - 1
    for index in range(x.size):
        if index in {0, last} or y[index] != y[index - 1] or y[index] != y[index + 1]:
            yield float(x[index]), float(y[index])
