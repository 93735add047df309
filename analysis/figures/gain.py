"""The gain of multipath over the best single path, with its interval: one row per headline metric."""

from collections.abc import Iterable

from matplotlib.lines import Line2D

from analysis.figures.style import INK, MARKER_SIZE, QUIET, Canvas, Drawing, percent_axis
from analysis.result import Analysis
from analysis.statistics import Comparison, Group, Series

ORDER = 10
TITLE = "What multipath gains over the best single path"
MAX_ROWS = 40
COLUMNS = ("scenario", "link", "metric", "labels", "transport", "baseline", "gain", "gain_low", "gain_high")


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Nothing when no multipath transport has a gain."""
    rows = [
        (group, series, series.comparison)
        for group in analysis.groups
        if group.metric.headline
        for series in group.measured
        if series.comparison is not None and series.comparison.gain is not None
    ]
    if rows:
        yield Drawing(
            stem="gain",
            section="gain",
            title=TITLE,
            caption="G with its 95 % interval. Right of the line multipath is better; an interval across it "
            "shows no difference.",
            svg=_svg(analysis, rows[:MAX_ROWS]),
            columns=COLUMNS,
            rows=[_csv(*row) for row in rows],
        )


def _csv(group: Group, series: Series, comparison: Comparison) -> tuple[object, ...]:
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


def _svg(analysis: Analysis, rows: list[tuple[Group, Series, Comparison]]) -> str:
    with Canvas(TITLE, 0.95 + 0.28 * len(rows)) as canvas:
        axes = canvas.facets(1)[0]
        axes.axvline(0, color=QUIET, linewidth=1.2, zorder=1)
        for y, (_, series, comparison) in enumerate(rows):
            transport, interval = series.transport, comparison.gain_interval
            if interval is not None:
                axes.plot([interval.low, interval.high], [y, y], color=transport.colour, linewidth=2.2)
            axes.plot(
                [comparison.gain or 0.0],
                [y],
                marker=transport.marker,
                color=transport.colour,
                markersize=MARKER_SIZE + 2,
                markeredgecolor="white",
            )
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [_name(analysis, group) for group, _, _ in rows])
        axes.tick_params(axis="y", labelcolor=INK)
        percent_axis(axes)
        axes.set_xlabel("G: saved against the best single path")
        low, high = axes.get_xlim()
        reach = max(abs(low), abs(high), 0.05)
        axes.set_xlim(min(low, -0.25 * reach), max(high, 0.25 * reach))
        transports = {series.transport.label: series.transport for _, series, _ in rows}.values()
        canvas.legend(
            [Line2D([], [], color=t.colour, marker=t.marker, linewidth=2.2, label=t.title) for t in transports]
        )
        return canvas.svg("gain")


def _name(analysis: Analysis, group: Group) -> str:
    parts = [group.scenario, group.link if analysis.several_links else "", group.label_text]
    headlines = {g.metric.name for g in analysis.groups if g.scenario == group.scenario and g.metric.headline}
    if len(headlines) > 1:
        parts.append(group.metric.title.lower())
    return " · ".join(part for part in parts if part)
