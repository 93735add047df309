"""Draw box plots of a metric with every value as a point; for many labels, draw medians and quartiles in rows."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import (
    FACET_COLUMNS,
    LINE_WIDTH,
    MARKER_SIZE,
    MAX_FACETS,
    Canvas,
    Drawing,
    axis_title,
    direction,
    facet_rows,
    name_rows,
    panel_title,
)
from mplab.analysis.statistics.summaries import HEAD_COLUMNS, Analysis, Group
from mplab.analysis.text import slug
from mplab.format.experiment import TransportRecord

COLUMNS = (*HEAD_COLUMNS, "transport", "cell", "repetition", "value")
POINT_SPREAD = 0.22
ROW_SPREAD = 0.5


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield a drawing per scenario, link and metric."""
    for panel in analysis.panels():
        many = len(panel) > MAX_FACETS
        first = panel[0]
        stem = slug("box", first.scenario, first.link, first.metric.name)
        boxes = "Median (dot) and quartiles (line)." if many else "Box: quartiles and median; points: cells."
        yield Drawing(
            stem=stem,
            section="distribution",
            title=f"{first.metric.title}: {'medians and quartiles' if many else 'every value'}",
            caption=f"{boxes} {direction(first.metric)}".strip(),
            svg=_rows(panel, stem) if many else _boxes(panel, stem),
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


def _transports(panel: Sequence[Group]) -> list[TransportRecord]:
    return list({s.transport.label: s.transport for group in panel for s in group.series}.values())


def _boxes(panel: Sequence[Group], stem: str) -> str:
    transports = _transports(panel)
    row_height = 0.34 * len(transports) + 0.75
    with Canvas(_title(panel), 0.2 + row_height * facet_rows(len(panel))) as canvas:
        for index, (axes, group) in enumerate(zip(canvas.facets(len(panel), sharey=True), panel, strict=True)):
            axes.set_title(group.label_text)
            for row, transport in enumerate(transports):
                series = group.of(transport.label)
                if series is not None:
                    _box(axes, row, transport, series.numbers)
            name_rows(axes, [t.title for t in transports])
            axes.tick_params(axis="y", labelleft=index % FACET_COLUMNS == 0)
            axes.set_xlabel(axis_title(group.metric))
            axes.margins(x=0.08)
            axes.locator_params(axis="x", nbins=5)
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
    offsets = np.linspace(-POINT_SPREAD, POINT_SPREAD, len(values)) if len(values) > 1 else [0.0]
    axes.plot(
        values,
        [place + offset for offset in offsets],
        linestyle="none",
        marker=transport.marker,
        markersize=MARKER_SIZE - 0.8,
        color=transport.colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
        alpha=0.9,
        zorder=3,
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
        axes.set_xlabel(axis_title(panel[0].metric))
        canvas.legend(
            [Line2D([], [], color=t.colour, marker=t.marker, linewidth=LINE_WIDTH, label=t.title) for t in transports]
        )
        return canvas.svg(stem)


FIGURE = RunFigure(order=30, title="Every value of a metric, per transport", draw=draw)
