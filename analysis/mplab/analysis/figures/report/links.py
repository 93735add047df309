"""Draw how far each cell's measured link deviates from the requested link, with the tolerance as a band."""

from collections.abc import Iterable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import (
    BAND,
    EDGE,
    QUIET,
    Canvas,
    Drawing,
    facet_rows,
    interface_colour,
    name_rows,
    percent_axis,
)
from mplab.analysis.record.links import QUANTITIES, Measurement, measurements, tolerance_of
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.text import percent
from mplab.format.link import interface_title

COLUMNS = ("cell", "outcome", "link", "interface", "quantity", "asked", "measured", "deviation", "where")
TITLE = "Links: measured compared with requested"
POINT_SPREAD = 0.25


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield the drawing, or nothing when the link of no cell was measured."""
    rows = measurements(analysis.run)
    if rows:
        yield Drawing(
            stem="links",
            section="links",
            title=TITLE,
            caption="A point is the probe before one cell; the band is the tolerance; a cross is a cell "
            "that is not ok.",
            svg=_svg(analysis, rows),
            columns=COLUMNS,
            rows=[
                (m.cell, m.outcome, m.link, m.interface, m.quantity, m.asked, m.measured, m.deviation, m.where)
                for m in rows
            ],
        )


def _svg(analysis: Analysis, probes: list[Measurement]) -> str:
    rows = list(dict.fromkeys((m.link, m.interface) for m in probes))
    with Canvas(TITLE, (1.0 + 0.34 * len(rows)) * facet_rows(len(QUANTITIES))) as canvas:
        for axes, (title, kind) in zip(canvas.facets(3, sharey=True), QUANTITIES, strict=True):
            tolerance = tolerance_of(analysis.run, kind)
            if tolerance:
                axes.axvspan(-tolerance, tolerance, color=BAND, linewidth=0, zorder=0)
                for end in (-tolerance, tolerance):
                    axes.axvline(end, color=EDGE, linewidth=0.8, zorder=1)
            axes.axvline(0, color=QUIET, linewidth=1.0, zorder=1)
            for row, (link, interface) in enumerate(rows):
                points = [m for m in probes if (m.link, m.interface, m.quantity) == (link, interface, title)]
                _points(canvas, axes, row, points)
            axes.set_title(title)
            axes.set_xlabel("Deviation from requested")
            low, high = axes.get_xlim()
            reach = max(abs(low), abs(high), (tolerance or 0.0) * 1.2, 0.02)
            axes.set_xlim(-reach * 1.08, reach * 1.08)
            percent_axis(axes)
            names = [f"{link} · {interface_title(interface)}" for link, interface in rows]
            name_rows(axes, names, grid=True)
        interfaces = dict.fromkeys(interface for _, interface in rows)
        handles: list[Line2D | Patch] = [
            Line2D([], [], marker="o", linestyle="none", color=interface_colour(i), label=interface_title(i))
            for i in interfaces
        ]
        canvas.legend(
            [
                *handles,
                Line2D([], [], marker="x", linestyle="none", color=QUIET, label="cell not ok"),
                Patch(facecolor=BAND, edgecolor=EDGE, label="tolerance"),
            ],
            columns=5,
        )
        return canvas.svg("links")


def _points(canvas: Canvas, axes: Axes, row: int, points: list[Measurement]) -> None:
    offsets = np.linspace(-POINT_SPREAD, POINT_SPREAD, len(points)) if len(points) > 1 else [0.0] * len(points)
    for ok in (True, False):
        places = [(float(row + at), point) for at, point in zip(offsets, points, strict=True) if ok == _is_ok(point)]
        if not places:
            continue
        (marks,) = axes.plot(
            [point.deviation for _, point in places],
            [at for at, _ in places],
            linestyle="none",
            marker="o" if ok else "x",
            markersize=4.0 if ok else 5.5,
            color=interface_colour(points[0].interface),
            zorder=3,
        )
        canvas.name_cells(marks, [(point.cell, f"{point.cell}: {percent(point.deviation)}") for _, point in places])


def _is_ok(point: Measurement) -> bool:
    return point.outcome == "ok"


FIGURE = RunFigure(order=50, title=TITLE, draw=draw)
