"""Make the trend page: one HTML file without scripts, with a small figure per metric, label and transport."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby, pairwise

from markupsafe import Markup

from mplab.analysis.report.htmlpage import page_css, page_environment
from mplab.analysis.statistics.changepoint import LEVEL
from mplab.analysis.text import number, percent
from mplab.analysis.verdicts.trend import History, shifts
from mplab.format.experiment import TransportRecord
from mplab.format.palette import PALETTE

_WIDTH, _HEIGHT, _MARGIN, _LEFT = 560.0, 150.0, 14.0, 52.0


@dataclass(frozen=True)
class TrendPanel:
    """A panel of the trend page: one metric, labels, scenario and link condition. It has a figure per transport."""

    title: str
    unit: str
    better: str
    histories: tuple[tuple[str, Markup, str], ...]
    """(title, SVG figure, caption) of each transport."""


def trend_page(experiment: str, histories: Sequence[History], looks: Sequence[TransportRecord]) -> str:
    """Return the trend page as HTML; ``looks`` are the transports of the newest run, for titles and colours."""
    runs = {point.run_id for history in histories for point in history.points}
    return (
        page_environment()
        .get_template("trend.html.j2")
        .render(
            css=page_css(),
            experiment=experiment,
            runs=len(runs),
            shifts=list(shifts(histories)),
            panels=list(_panels(histories, {look.label: look for look in looks})),
            level=percent(LEVEL),
        )
    )


def _panels(histories: Sequence[History], looks: dict[str, TransportRecord]) -> Iterator[TrendPanel]:
    def panel(history: History) -> tuple[str, ...]:
        return (history.scenario, history.link, history.metric.name, history.labels)

    for _, group in groupby(histories, key=panel):
        own = list(group)
        first = own[0]
        low, high = _range(own)
        words = {"lower": "less is better", "higher": "more is better", "neither": ""}
        yield TrendPanel(
            title=" · ".join(part for part in (first.metric.title, first.labels, first.scenario, first.link) if part),
            unit=first.metric.unit,
            better=words[first.metric.better],
            histories=tuple(
                (_title(h, looks), Markup(_figure(h, low, high, _colour(h, looks))), _caption(h))  # noqa: S704
                for h in own
            ),
        )


def _range(histories: Sequence[History]) -> tuple[float, float]:
    ends = [
        end
        for history in histories
        for p in history.points
        for end in ((p.interval.low, p.interval.high) if p.interval else (p.median,))
    ]
    low, high = min(ends), max(ends)
    return (low, high) if high > low else (low - abs(low) / 2 - 0.5, high + abs(high) / 2 + 0.5)


def _figure(history: History, low: float, high: float, colour: str) -> str:
    """Return the SVG of a metric's history: the median of each run with its interval.

    The level between two changes is a horizontal line, and each change of level is a dashed vertical line.

    ``low`` and ``high`` are the ends of the y axis, the same for all figures of a panel.
    """
    points = history.points
    step = (_WIDTH - _LEFT - _MARGIN) / max(1, len(points) - 1)

    def x(place: float) -> float:
        return _LEFT + place * step

    def y(value: float) -> float:
        return _HEIGHT - _MARGIN - (value - low) / (high - low) * (_HEIGHT - 2 * _MARGIN)

    label = escape(f"{history.about}: medians of {len(points)} runs, {number(low)} to {number(high)}", quote=True)
    parts = [
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" aria-label="{label}">',
        *(
            f'<text x="{_LEFT - 8:g}" y="{y(value) + 4:.1f}" text-anchor="end" font-size="11" fill="#5b6675">'
            f"{number(value)}</text>"
            for value in (low, high)
        ),
    ]
    edges = [0, *(change.index for change in history.changes), len(points)]
    levels = [history.changes[0].before, *(c.after for c in history.changes)] if history.changes else []
    for (start, end), level in zip(pairwise(edges), levels, strict=False):
        parts.append(_line((x(start), y(level)), (x(end - 1), y(level)), "#9aa4b2", 'stroke-width="2"'))
    for change in history.changes:
        at = x(change.index - 0.5)
        colour_of = {True: "#cf4457", False: "#0b6b4a", None: "#5b6675"}[history.worse(change)]
        parts.append(_line((at, _MARGIN / 2), (at, _HEIGHT - _MARGIN / 2), colour_of, 'stroke-dasharray="4 3"'))
    for index, point in enumerate(points):
        if point.interval is not None:
            parts.append(_line((x(index), y(point.interval.low)), (x(index), y(point.interval.high)), colour))
        title = escape(f"{point.run_id}: {number(point.median)} {history.metric.unit} (n = {point.n})")
        circle = f'<circle cx="{x(index):.1f}" cy="{y(point.median):.1f}" r="3.5" fill="{colour}">'
        parts.append(f"{circle}<title>{title}</title></circle>")
    return "".join((*parts, "</svg>"))


def _line(start: tuple[float, float], end: tuple[float, float], colour: str, more: str = "") -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}" {more}/>'


def _title(history: History, looks: dict[str, TransportRecord]) -> str:
    look = looks.get(history.transport)
    return look.title if look else history.transport


def _colour(history: History, looks: dict[str, TransportRecord]) -> str:
    look = looks.get(history.transport)
    return look.colour if look else PALETTE[-1]


def _caption(history: History) -> str:
    last = history.points[-1]
    unit = f" {history.metric.unit}".rstrip()
    since = f"level since {history.points[history.changes[-1].index].run_id}" if history.changes else "no change seen"
    return f"last {number(last.median)}{unit} (n = {last.n}), {since}"
