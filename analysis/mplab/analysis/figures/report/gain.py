"""Draw the gain of multipath over the best single path, with its interval: a row per headline metric and labels."""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import TypeAlias

from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.style import INK, MARKER_SIZE, MAX_FACETS, QUIET, Canvas, Drawing, panel_title, percent_axis
from mplab.analysis.metric import Labels
from mplab.analysis.statistics.summaries import Analysis, Group, Series, UnpairedComparison
from mplab.analysis.text import percent, slug

TITLE = "Gain of multipath over the best single path"
READING = "Right of the line, multipath is better."
COLUMNS = ("scenario", "link", "metric", "labels", "transport", "baseline", "gain", "gain_low", "gain_high")

_LEAST = -1.0
"""Smallest gain on the axis: a smaller one is a number at its end, so that it does not squeeze the others."""

Row: TypeAlias = tuple[Group, Series, UnpairedComparison]


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield one drawing of all headline metrics with few labels, and one for each headline metric with many labels."""
    together: list[Row] = []
    for panel in analysis.panels(traced=False):
        if not panel[0].metric.headline:
            continue
        rows = _rows(panel)
        if len(panel) <= MAX_FACETS:
            together += rows
        elif rows:
            yield _of_many(panel, rows)
    if together:
        yield Drawing(
            stem="gain",
            section="gain",
            title=TITLE,
            caption=f"Gain with its 95 % interval. {READING}",
            svg=_svg(TITLE, "gain", [(_name(analysis, row[0]), row) for row in together]),
            columns=COLUMNS,
            rows=[_csv(*row) for row in together],
        )


def _of_many(panel: Sequence[Group], rows: list[Row]) -> Drawing:
    first = panel[0]
    stem = slug("gain", first.scenario, first.link, first.metric.name)
    gains: dict[Labels, list[float]] = {}
    for group, _, comparison in rows:
        gains.setdefault(group.labels, []).append(comparison.gain or 0.0)
    ranked = sorted(rows, key=lambda row: -median(gains[row[0].labels]))
    return Drawing(
        stem=stem,
        section="distribution",
        title=f"{first.metric.title}: gain of multipath",
        caption=f"Gain with its 95 % interval, the greatest first. {READING}",
        svg=_svg(
            panel_title(first.scenario, first.link, f"{first.metric.title}: gain of multipath"),
            stem,
            [(row[0].label_text, row) for row in ranked],
        ),
        columns=COLUMNS,
        rows=[_csv(*row) for row in ranked],
        scenario=first.scenario,
        link=first.link,
        metric=first.metric.name,
    )


def _rows(panel: Sequence[Group]) -> list[Row]:
    return [
        (group, series, series.comparison)
        for group in panel
        for series in group.measured
        if series.comparison is not None and series.comparison.gain is not None
    ]


def _csv(group: Group, series: Series, comparison: UnpairedComparison) -> tuple[object, ...]:
    interval = comparison.gain_interval
    return (
        group.scenario,
        group.link,
        group.metric.name,
        group.label_text,
        series.transport.label,
        comparison.baseline,
        comparison.gain,
        interval.low if interval else None,
        interval.high if interval else None,
    )


def _svg(title: str, stem: str, rows: list[tuple[str, Row]]) -> str:
    with Canvas(title, 0.85 + 0.24 * len(rows)) as canvas:
        axes = canvas.facets(1)[0]
        axes.axvline(0, color=QUIET, linewidth=1.2, zorder=1)
        for y, (_, (_, series, comparison)) in enumerate(rows):
            transport, interval = series.transport, comparison.gain_interval
            gain = comparison.gain or 0.0
            if gain < _LEAST:
                at_left = axes.get_yaxis_transform()
                axes.text(0.01, y, f"◂ {percent(gain)}", color=transport.colour, va="center", transform=at_left)
                continue
            if interval is not None:
                axes.plot([interval.low, interval.high], [y, y], color=transport.colour, linewidth=2.2)
            axes.plot(
                [gain],
                [y],
                marker=transport.marker,
                color=transport.colour,
                markersize=MARKER_SIZE + 2,
                markeredgecolor="white",
            )
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [name for name, _ in rows])
        axes.tick_params(axis="y", labelcolor=INK)
        percent_axis(axes)
        axes.set_xlabel("Gain over the best single path")
        low, high = axes.get_xlim()
        low = max(low, _LEAST)
        reach = max(abs(low), abs(high), 0.05)
        axes.set_xlim(min(low, -0.25 * reach), max(high, 0.25 * reach))
        transports = {series.transport.label: series.transport for _, (_, series, _) in rows}.values()
        canvas.legend(
            [Line2D([], [], color=t.colour, marker=t.marker, linewidth=2.2, label=t.title) for t in transports]
        )
        return canvas.svg(stem)


def _name(analysis: Analysis, group: Group) -> str:
    parts = [group.scenario, group.link if analysis.several_links else "", group.label_text]
    headlines = {g.metric.name for g in analysis.groups if g.scenario == group.scenario and g.metric.headline}
    if len(headlines) > 1:
        parts.append(group.metric.title.lower())
    return " · ".join(part for part in parts if part)


FIGURE = RunFigure(order=10, title=TITLE, draw=draw)
