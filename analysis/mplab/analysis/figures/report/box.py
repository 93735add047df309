"""Draw every value of a metric: a strip plot for few values, else a box plot; for many labels, medians and quartiles.

A strip plot has the median and its 95 % interval, because the quartiles of few values say little.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import (
    INK,
    LINE_WIDTH,
    MARKER_SIZE,
    MAX_FACETS,
    Canvas,
    Drawing,
    axis_title,
    direction,
    facet_columns,
    facet_rows,
    has_few,
    name_rows,
    panel_title,
    title_below,
    value_axis,
)
from mplab.analysis.metric import Metric
from mplab.analysis.statistics.summaries import HEAD_COLUMNS, Analysis, Group, Series
from mplab.analysis.text import number, slug
from mplab.format.experiment import TransportRecord

COLUMNS = (*HEAD_COLUMNS, "transport", "cell", "repetition", "value")
READING = {
    "rows": "Median (dot) and quartiles (line).",
    "strip": "Points: cells; line: their median; band: its 95 % interval.",
    "box": "Box: quartiles and median; points: cells.",
}
"""Kind of drawing → explanation of its marks."""

ROW_IN, AXIS_IN = 0.21, 0.55
"""Height of a row of a strip plot, and of its axis, inches."""
HEAD_ROWS, GAP_ROWS = 0.95, 0.35
"""Space for the name of a label, and below its rows, in rows."""
MEDIAN_HALF = 0.38
POINT_SPREAD = 0.22
ROW_SPREAD = 0.5


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield a drawing per scenario, link and metric."""
    for panel in analysis.panels(traced=False):
        first = panel[0]
        kind = "rows" if len(panel) > MAX_FACETS else "strip" if has_few(panel) else "box"
        stem = slug("strip" if kind == "strip" else "box", first.scenario, first.link, first.metric.name)
        svg = {"rows": _rows, "strip": _strip, "box": _boxes}[kind](panel, stem)
        yield Drawing(
            stem=stem,
            section="distribution",
            title=f"{first.metric.title}: {'medians and quartiles' if kind == 'rows' else 'every value'}",
            caption=f"{READING[kind]} {direction(first.metric)}".strip(),
            svg=svg,
            columns=COLUMNS,
            rows=[
                (*g.head, s.transport.label, *row)
                for g in panel
                for s in g.measured
                for row in ((v.cell, v.repetition, v.value) for v in s.values)
            ],
            scenario=first.scenario,
            link=first.link,
            metric=first.metric.name,
        )


def _title(panel: Sequence[Group]) -> str:
    return panel_title(panel[0].scenario, panel[0].link, panel[0].metric.title)


def _values(panel: Sequence[Group]) -> list[float]:
    return [value for group in panel for series in group.measured for value in series.numbers]


def _strip(panel: Sequence[Group], stem: str) -> str:
    """Draw a row per label and transport, on one axis of values; the rows of a label stand below its name."""
    rows: list[tuple[float, str]] = []
    heads: list[int] = []
    place = 0.0
    with Canvas(_title(panel), 0.0) as canvas:
        axes = canvas.facets(1)[0]
        for group in panel:
            if len(panel) > 1:
                heads.append(len(rows))
                rows.append((place, group.label_text))
                place += HEAD_ROWS
            for series in group.measured:
                _strip_row(canvas, axes, place, series, group.metric)
                rows.append((place, series.transport.title))
                place += 1
            place += GAP_ROWS
        canvas.figure.set_figheight(AXIS_IN + ROW_IN * place)
        axes.set_yticks([y for y, _ in rows], [name for _, name in rows])
        axes.set_ylim(place - GAP_ROWS - 0.4, -0.6)
        axes.tick_params(axis="y", labelcolor=INK)
        axes.grid(visible=False, axis="y")
        for head in heads:
            axes.get_yticklabels()[head].set_fontweight("bold")
        value_axis([axes], _values(panel), axis_title(panel[0].metric))
        return canvas.svg(stem)


def _strip_row(canvas: Canvas, axes: Axes, place: float, series: Series, metric: Metric) -> None:
    """Draw one transport's values, with their median as a line across and its interval as a bar along the row."""
    transport, described = series.transport, series.description
    if described is not None:
        if described.interval is not None:
            ends = [described.interval.low, described.interval.high]
            axes.plot(ends, [place, place], color=transport.colour, linewidth=7.0, alpha=0.3, solid_capstyle="butt")
        half = [place - MEDIAN_HALF, place + MEDIAN_HALF]
        axes.plot([described.median] * 2, half, color=transport.colour, linewidth=2.6, zorder=2.5)
    _points(canvas, axes, place, series, metric)


def _points(canvas: Canvas, axes: Axes, place: float, series: Series, metric: Metric) -> None:
    transport, values = series.transport, series.values
    offsets = np.linspace(-POINT_SPREAD, POINT_SPREAD, len(values)) if len(values) > 1 else [0.0]
    (marks,) = axes.plot(
        series.numbers,
        [place + offset for offset in offsets],
        linestyle="none",
        marker=transport.marker,
        markersize=MARKER_SIZE - 0.8,
        color=transport.colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
        zorder=3,
    )
    unit = f" {metric.unit}" if metric.unit else ""
    canvas.name_cells(marks, [(value.cell, f"{value.cell}: {number(value.value)}{unit}") for value in values])


def _transports(panel: Sequence[Group]) -> list[TransportRecord]:
    return list({s.transport.label: s.transport for group in panel for s in group.series}.values())


def _boxes(panel: Sequence[Group], stem: str) -> str:
    transports = _transports(panel)
    row_height = 0.34 * len(transports) + 0.75
    with Canvas(_title(panel), row_height * facet_rows(len(panel))) as canvas:
        all_axes = canvas.facets(len(panel), sharex=True, sharey=True)
        for index, (axes, group) in enumerate(zip(all_axes, panel, strict=True)):
            axes.set_title(group.label_text)
            for row, transport in enumerate(transports):
                series = group.of(transport.label)
                if series is not None:
                    _box(axes, row, transport, series.numbers)
                    _points(canvas, axes, row, series, group.metric)
            name_rows(axes, [t.title for t in transports])
            axes.tick_params(axis="y", labelleft=index % facet_columns() == 0)
        value_axis(all_axes, _values(panel), axis_title(panel[0].metric))
        title_below(canvas, all_axes)
        return canvas.svg(stem)


def _box(axes: Axes, place: int, transport: TransportRecord, values: Sequence[float]) -> None:
    if len(values) > 1:
        line = {"color": transport.colour, "linewidth": 1.3}
        axes.boxplot(
            [values],
            positions=[place],
            widths=0.62,
            orientation="horizontal",
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": transport.colour + "26", "edgecolor": transport.colour, "linewidth": 1.3},
            whiskerprops=line,
            capprops=line,
            medianprops={"color": transport.colour, "linewidth": 2.4},
        )


def _rows(panel: Sequence[Group], stem: str) -> str:
    transports = _transports(panel)
    offsets = np.linspace(-ROW_SPREAD / 2, ROW_SPREAD / 2, len(transports)) if len(transports) > 1 else [0.0]
    with Canvas(_title(panel), 1.0 + 0.30 * len(panel)) as canvas:
        axes = canvas.facets(1)[0]
        for row, group in enumerate(panel):
            for offset, transport in zip(offsets, transports, strict=True):
                series = group.of(transport.label)
                if series is None or series.description is None:
                    continue
                d, y = series.description, row + float(offset)
                axes.plot([d.q1, d.q3], [y, y], color=transport.colour, linewidth=LINE_WIDTH, alpha=0.6)
                axes.plot([d.median], [y], marker=transport.marker, color=transport.colour, markersize=MARKER_SIZE)
        name_rows(axes, [group.label_text for group in panel], grid=True)
        described = [series.description for group in panel for series in group.measured]
        quartiles = [quartile for known in described if known is not None for quartile in (known.q1, known.q3)]
        value_axis([axes], quartiles, axis_title(panel[0].metric))
        canvas.legend(
            [Line2D([], [], color=t.colour, marker=t.marker, linewidth=LINE_WIDTH, label=t.title) for t in transports]
        )
        return canvas.svg(stem)


FIGURE = RunFigure(order=30, title="Every value of a metric, per transport", draw=draw, stems=("box", "strip"))
