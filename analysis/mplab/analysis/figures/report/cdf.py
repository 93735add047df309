"""Draw the empirical distribution of a metric, with a step curve per transport."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import (
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
    panel_title,
    share_axis,
    title_below,
    value_axis,
)
from mplab.analysis.statistics.summaries import Analysis, Group
from mplab.analysis.text import slug
from mplab.format.experiment import TransportRecord

COLUMNS = ("scenario", "link", "metric", "unit", "labels", "transport", "value", "cumulative_share")
Curve = tuple[TransportRecord, list[float]]


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield a drawing per scenario, link and metric.

    The drawing has a facet per combination of labels. If there are more than `MAX_FACETS` of them, a single facet shows
    the distribution of their medians. A panel of few values (`has_few`) has no drawing: its strip plot shows them all.
    """
    for panel in analysis.panels(traced=False):
        if len(panel) > MAX_FACETS:
            yield _pooled(panel)
        elif not has_few(panel):
            yield _facets(panel)


def _facets(panel: Sequence[Group]) -> Drawing:
    curves = {group.label_text: [(s.transport, s.numbers) for s in group.measured] for group in panel}
    step_meaning = "Each step is one cell (one repetition)."
    return _drawing(panel, curves, "Share of cells", step_meaning)


def _pooled(panel: Sequence[Group]) -> Drawing:
    transports = {s.transport.label: s.transport for group in panel for s in group.measured}
    curves: list[Curve] = []
    for label, transport in transports.items():
        medians = [s.description.median for g in panel if (s := g.of(label)) and s.description]
        curves.append((transport, medians))
    names = ", ".join(name for name, _ in panel[0].labels)
    text = f"median of each {names}, {len(panel)} of them"
    return _drawing(panel, {text: curves}, f"Share ({names})", f"Each step is the median of one {names}.")


def _drawing(panel: Sequence[Group], curves: dict[str, list[Curve]], y_title: str, what: str) -> Drawing:
    first = panel[0]
    title = panel_title(first.scenario, first.link, first.metric.title)
    stem = slug("cdf", first.scenario, first.link, first.metric.name)
    with Canvas(title, 0.45 + 2.1 * facet_rows(len(curves))) as canvas:
        all_axes = canvas.facets(len(curves), sharex=True, sharey=True)
        for index, (axes, (text, lines)) in enumerate(zip(all_axes, curves.items(), strict=True)):
            axes.set_title(text)
            _curves(axes, lines)
            if index % facet_columns() == 0:
                axes.set_ylabel(y_title)
        everything = [value for lines in curves.values() for _, values in lines for value in values]
        value_axis(all_axes, everything, axis_title(first.metric))
        title_below(canvas, all_axes)
        canvas.legend(_handles(curves))
        svg = canvas.svg(stem)
    return Drawing(
        stem=stem,
        section="distribution",
        title=f"{first.metric.title}: distribution",
        caption=f"{what} A curve further {_side(first)} is better." if _side(first) else what,
        svg=svg,
        columns=COLUMNS,
        rows=[
            (first.scenario, first.link, first.metric.name, first.metric.unit, text, transport.label, x, y)
            for text, lines in curves.items()
            for transport, values in lines
            for x, y in zip(*_steps(values), strict=True)
        ],
        scenario=first.scenario,
        link=first.link,
        metric=first.metric.name,
    )


def _side(group: Group) -> str:
    return {"Lower is better.": "left", "Higher is better.": "right"}.get(direction(group.metric), "")


def _steps(values: Sequence[float]) -> tuple[list[float], list[float]]:
    return sorted(values), [float(y) for y in np.arange(1, len(values) + 1) / len(values)]


def _curves(axes: Axes, lines: Iterable[Curve]) -> None:
    for transport, values in lines:
        x, y = _steps(values)
        axes.step([x[0], *x], [0.0, *y], where="post", color=transport.colour, linewidth=LINE_WIDTH, label="_")
        axes.plot(
            x,
            y,
            linestyle="none",
            marker=transport.marker,
            markersize=MARKER_SIZE,
            color=transport.colour,
            markeredgecolor="white",
            markeredgewidth=0.6,
        )
    share_axis(axes)


def _handles(curves: dict[str, list[Curve]]) -> list[Line2D]:
    transports = {transport.label: transport for lines in curves.values() for transport, _ in lines}
    return [
        Line2D(
            [], [], color=t.colour, marker=t.marker, linewidth=LINE_WIDTH, markersize=MARKER_SIZE + 0.5, label=t.title
        )
        for t in transports.values()
    ]


FIGURE = RunFigure(order=20, title="Distribution of a metric, per transport", draw=draw)
