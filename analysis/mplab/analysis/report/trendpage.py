"""Make the trend page: one HTML file without scripts, with a chart per metric and labels over the dates of the runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from mplab.analysis.report.chart import ChartAxis, marker_path, place_of, time_axis, value_axis
from mplab.analysis.report.htmlpage import chart_css, page_css, page_environment, page_script
from mplab.analysis.statistics.changepoint import FEWEST_RUNS, LEVEL, SHUFFLES
from mplab.analysis.text import HARD_SPACE, Scale, scale_of
from mplab.analysis.verdicts.trend import History, Point, shifts
from mplab.format.experiment import TransportRecord
from mplab.format.palette import MARKERS_OF_FIGURES, PALETTE

_SPREAD_PX = 5.0
"""Distance between the marks of two transports of one run, pixels."""


@dataclass(frozen=True)
class Dot:
    """The mark of a run in a chart. ``x`` is in percent of the width, ``y``, ``low`` and ``high`` of the height."""

    x: float
    y: float
    low: float
    high: float
    title: str
    href: str


@dataclass(frozen=True)
class Jump:
    """A change of level in a chart: the places of the vertical line and of both levels, percent, with the evidence."""

    x: float
    start: float
    end: float
    before: float
    after: float
    word: str
    title: str


@dataclass(frozen=True)
class TrendLine:
    """The series of one transport in a chart; ``shift`` moves its marks sideways, pixels."""

    look: TransportRecord
    marker: Markup
    shift: float
    dots: tuple[Dot, ...]
    jumps: tuple[Jump, ...]
    verdict: str
    """Whether the level changed, or why this is unknown."""
    state: str
    """``worse``, ``better``, ``changed``, ``steady`` or ``few``."""
    details: tuple[str, ...]
    """A sentence for each change of level."""


@dataclass(frozen=True)
class TrendPanel:
    """A chart of the trend page: one metric with one combination of labels, scenario and link condition."""

    label: str
    about: str
    unit: str
    y: ChartAxis
    x: ChartAxis
    lines: tuple[TrendLine, ...]
    rows: tuple[tuple[str, str, str, tuple[str, ...]], ...]
    """(date, run, link to the report or "", values of the transports) of each run, oldest first."""


@dataclass(frozen=True)
class TrendSection:
    """The charts of a metric for a scenario and a link condition."""

    anchor: str
    title: str
    place: str
    better: str
    panels: tuple[TrendPanel, ...]
    looks: tuple[tuple[TransportRecord, Markup], ...]


def trend_page(
    experiment: str,
    histories: Sequence[History],
    looks: Sequence[TransportRecord],
    reports: Mapping[str, str] | None = None,
) -> str:
    """Return the trend page as HTML.

    Args:
        experiment: name of the experiment.
        histories: histories of its metrics.
        looks: transports of the newest run, for titles, colours and markers.
        reports: run → link from the page to the run's report.
    """
    points = {point.run_id: point for history in histories for point in history.points}
    dates = sorted(f"{point.started:%Y-%m-%d}" for point in points.values() if point.started)
    known = {look.label: look for look in looks}
    return (
        page_environment()
        .get_template("trend.html.j2")
        .render(
            css=page_css(),
            chart_css=chart_css(),
            script=page_script(),
            experiment=experiment,
            runs=len(points),
            dates=dates,
            shifts=[(shift, (reports or {}).get(shift.run_id, "")) for shift in shifts(histories)],
            few=sum(history.too_few for history in histories),
            histories=len(histories),
            fewest=FEWEST_RUNS,
            sections=list(_sections(histories, known, reports or {})),
            level=f"{LEVEL:.0%}".replace("%", f"{HARD_SPACE}%"),
            orders=SHUFFLES,
        )
    )


def _sections(
    histories: Sequence[History], looks: Mapping[str, TransportRecord], reports: Mapping[str, str]
) -> Iterator[TrendSection]:
    def place(history: History) -> tuple[str, ...]:
        return (history.scenario, history.link, history.metric.name)

    groups = groupby(histories, key=place)
    for number, ((scenario, link, _), group) in enumerate(groups, 1):
        own = list(group)
        metric = own[0].metric
        panels = [list(panel) for _, panel in groupby(own, key=lambda history: history.labels)]
        transports = list(dict.fromkeys(history.transport for history in own))
        words = {"lower": "lower is better", "higher": "higher is better", "neither": ""}
        yield TrendSection(
            anchor=f"metric-{number}",
            title=metric.title,
            place=" · ".join((scenario, link)),
            better=words[metric.better],
            panels=tuple(_panel(panel, looks, reports, len(transports)) for panel in panels),
            looks=tuple((look, marker_path(look.marker)) for name in transports for look in (_look(name, looks),)),
        )


def _panel(
    histories: Sequence[History], looks: Mapping[str, TransportRecord], reports: Mapping[str, str], count: int
) -> TrendPanel:
    runs = {point.run_id: point for history in histories for point in history.points}
    ordered = sorted(runs.values(), key=lambda point: (f"{point.started or ''}", point.run_id))
    scale = scale_of(histories[0].metric.unit, (p.median for history in histories for p in history.points))
    ends = [
        end * scale.factor
        for history in histories
        for p in history.points
        for end in ((p.interval.low, p.interval.high, p.median) if p.interval else (p.median,))
    ]
    y, dates = value_axis(ends), [point.started for point in ordered if point.started]
    x = time_axis(dates) if dates else ChartAxis(0, 1, ())
    lines = tuple(
        _line(history, _look(history.transport, looks), (place - (count - 1) / 2) * _SPREAD_PX, (x, y, scale), reports)
        for place, history in enumerate(histories)
    )
    values = [{point.run_id: point for point in history.points} for history in histories]
    return TrendPanel(
        label=histories[0].labels,
        about=f"{histories[0].metric.title} {histories[0].labels}".strip(),
        unit=scale.unit,
        y=y,
        x=x,
        lines=lines,
        rows=tuple(
            (
                f"{point.started:%Y-%m-%d %H:%M}" if point.started else "",
                point.run_id,
                reports.get(point.run_id, ""),
                tuple(_value(by_run.get(point.run_id), scale) for by_run in values),
            )
            for point in ordered
        ),
    )


def _line(
    history: History,
    look: TransportRecord,
    shift: float,
    axes: tuple[ChartAxis, ChartAxis, Scale],
    reports: Mapping[str, str],
) -> TrendLine:
    x, y, scale = axes

    def height(value: float) -> float:
        return round(100 - y.at(value * scale.factor), 2)

    dots = []
    for point in history.points:
        if point.started is not None:
            low, high = (point.interval.low, point.interval.high) if point.interval else (point.median, point.median)
            place = (place_of(x, point.started), height(point.median), height(low), height(high))
            title = (
                f"{look.title}, {point.started:%Y-%m-%d %H:%M}: {_value(point, scale)}, n = {point.n}; {point.run_id}"
            )
            dots.append(Dot(*place, title, reports.get(point.run_id, "")))
    words = [history.word(change) for change in history.changes]
    return TrendLine(
        look=look,
        marker=marker_path(look.marker),
        shift=shift,
        dots=tuple(dots),
        jumps=tuple(_jumps(history, x, height)),
        verdict=history.verdict,
        state=words[-1] if words else "few" if history.too_few else "steady",
        details=tuple(
            f"{word} since {_date(history.points[change.index])}: {history.size(change)}; {history.evidence(change)}"
            for word, change in zip(words, history.changes, strict=True)
        ),
    )


def _jumps(history: History, x: ChartAxis, height: Callable[[float], float]) -> Iterator[Jump]:
    for change in history.changes:
        dates = [point.started for point in history.points[change.index - change.n_before :][: change.n_before]]
        later = [point.started for point in history.points[change.index :][: change.n_after]]
        known, known_later = [d for d in dates if d], [d for d in later if d]
        if not known or not known_later:
            continue
        word = history.word(change)
        yield Jump(
            x=round((place_of(x, known[-1]) + place_of(x, known_later[0])) / 2, 2),
            start=place_of(x, known[0]),
            end=place_of(x, known_later[-1]),
            before=height(change.before),
            after=height(change.after),
            word=word,
            title=f"{history.transport}: {word}: {history.size(change)}; {history.evidence(change)}",
        )


def _value(point: Point | None, scale: Scale) -> str:
    if point is None:
        return scale.number(None)
    limits = f" ({scale.number(point.interval.low)} to {scale.number(point.interval.high)})" if point.interval else ""
    return f"{scale.text(point.median)}{limits}"


def _date(point: Point) -> str:
    return f"{point.started:%Y-%m-%d}" if point.started else point.run_id


def _look(transport: str, looks: Mapping[str, TransportRecord]) -> TransportRecord:
    """Return title, colour and marker of a transport; those that the newest run does not have are grey."""
    unknown = TransportRecord(transport, transport, colour=PALETTE[-1], marker=MARKERS_OF_FIGURES[0], title=transport)
    return looks.get(transport, unknown)
