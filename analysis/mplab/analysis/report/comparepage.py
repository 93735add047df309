"""Make the page of a comparison: one HTML file without scripts, with the changes as a forest plot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from mplab.analysis.record.run import Run
from mplab.analysis.report.chart import ChartAxis, Tick, marker_path, nice_limit, plain_numbers
from mplab.analysis.report.htmlpage import chart_css, page_css, page_environment, page_script
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.power import LEVEL
from mplab.analysis.text import DASH, Scale, p_text, tenths
from mplab.analysis.verdicts.compare import ComparedRuns, MetricChange, SeriesKey
from mplab.analysis.verdicts.gate import GateCheck, interval_text, scale_of_changes
from mplab.analysis.verdicts.trend import Shift
from mplab.format.experiment import TransportRecord
from mplab.format.palette import MARKERS_OF_FIGURES, PALETTE

_LEAST_REACH, _MOST_REACH = 0.1, 1.0
"""Limits of the forest plot's axis in each direction, as fractions of the baseline's median."""

BETTER = {"lower": "lower is better", "higher": "higher is better", "neither": ""}


@dataclass(frozen=True)
class ForestMark:
    """The change and its interval on the axis of the plot, percent of its width.

    ``beyond`` is ``left``, ``right`` or "": the end of the axis beyond which the interval reaches.
    """

    at: float
    low: float
    high: float
    zone_low: float
    zone_high: float
    beyond: str
    inside: bool
    """Whether the interval lies in the zone of changes that do not matter."""


@dataclass(frozen=True)
class ForestRow:
    """A row of the forest plot: one metric of one transport. Texts have no unit except percent."""

    label: str
    look: TransportRecord
    marker: Markup
    before: str
    after: str
    change: str
    limits: str
    p: str
    n: str
    verdict: str
    mark: ForestMark | None
    """None: there is no relative change or no interval to draw."""
    note: str
    title: str


@dataclass(frozen=True)
class ForestGroup:
    """The rows of a metric for a scenario and a link condition."""

    title: str
    place: str
    unit: str
    better: str
    headline: bool
    labelled: bool
    rows: tuple[ForestRow, ...]


def compare_page(
    compared: ComparedRuns,
    checks: Sequence[GateCheck],
    shifts: Sequence[Shift] = (),
    reports: Mapping[str, str] | None = None,
) -> str:
    """Return the page of a comparison as HTML.

    Args:
        compared: the compared runs.
        checks: results of the checks of the regression gate.
        shifts: changes of level over the compared runs.
        reports: run → link from the page to the run's report.
    """
    links = reports or {}
    both = [c for c in compared.changes if c.before.values and c.after.values]
    axis = forest_axis(both)
    looks = {look.label: look for run in (*compared.baseline, compared.run) for look in run.manifest.transports}
    groups = list(_groups(compared, both, axis, looks))
    failed = [check for check in checks if check.state == "failed"]
    return (
        page_environment()
        .get_template("compare.html.j2")
        .render(
            css=page_css(),
            chart_css=chart_css(),
            script=page_script(),
            compared=compared,
            title=compared.run.manifest.experiment.title or compared.run.manifest.experiment.name,
            before=[_named(run, links) for run in compared.baseline],
            now=_named(compared.run, links),
            failed=failed,
            counts=[(state, sum(c.state == state for c in checks)) for state in ("passed", "failed", "not judged")],
            missing=[_series(key) for key in compared.missing],
            emptied=[_series(key) for key in compared.emptied],
            gone=list(_lone(compared.of("gone", headline=False), looks)),
            new=list(_lone(compared.of("new", headline=False), looks)),
            axis=axis,
            headlines=[group for group in groups if group.headline],
            others=[group for group in groups if not group.headline],
            budgets=[check for check in checks if check.kind in {"limit", "no worse than"}],
            shifts=shifts,
            smallest=compared.run.manifest.experiment.smallest_effect,
            correction={"bh": "Benjamini and Hochberg's method", "holm": "Holm's method", "none": "no correction"}[
                compared.correction
            ],
        )
    )


def forest_axis(changes: Sequence[MetricChange]) -> ChartAxis:
    """Return the axis of the forest plot, symmetrical around 0, in percent of the baseline's median.

    It covers the intervals of headline metrics, but not more than ±100 %.
    """
    own = [c for c in changes if c.metric.headline] or changes
    ends = [end for c in own if (i := c.relative_interval or _point(c)) is not None for end in (i.low, i.high)]
    reach = nice_limit(ends, _LEAST_REACH, _MOST_REACH)
    bare = ChartAxis(-reach, reach, ())
    values = [-reach, -reach / 2, 0.0, reach / 2, reach]
    labels = plain_numbers([100 * value for value in values])
    signed = [f"+{label}" if value > 0 else label for value, label in zip(values, labels, strict=True)]
    return ChartAxis(-reach, reach, tuple(Tick(bare.at(v), f"{n} %") for v, n in zip(values, signed, strict=True)))


def _groups(
    compared: ComparedRuns, changes: Sequence[MetricChange], axis: ChartAxis, looks: Mapping[str, TransportRecord]
) -> Iterator[ForestGroup]:
    def place(change: MetricChange) -> tuple[object, ...]:
        return (change.metric.headline, change.key.scenario, change.key.link, change.key.metric)

    for _, members in groupby(changes, key=place):
        own = list(members)
        key, metric, scale = own[0].key, own[0].metric, scale_of_changes(*own)
        yield ForestGroup(
            title=metric.title,
            place=" · ".join((key.scenario, key.link)),
            unit=scale.unit,
            better=BETTER[metric.better],
            headline=metric.headline,
            labelled=any(change.key.labels for change in own),
            rows=tuple(_row(compared, change, scale, axis, looks) for change in own),
        )


def _row(
    compared: ComparedRuns,
    change: MetricChange,
    scale: Scale,
    axis: ChartAxis,
    looks: Mapping[str, TransportRecord],
) -> ForestRow:
    look = _look(change.key.transport, looks)
    relative, limits = change.relative, interval_text(change.relative_interval)
    mark = _mark(compared, change, axis)
    return ForestRow(
        label=change.key.labels,
        look=look,
        marker=marker_path(look.marker),
        before=scale.number(change.before.median),
        after=scale.number(change.after.median),
        change=tenths(relative, sign=True) if relative is not None else scale.signed(change.shift or 0.0),
        limits=limits,
        p=p_text(change.p_corrected),
        n=f"{len(change.before.values)}, {len(change.after.values)}",
        verdict=change.verdict,
        mark=mark,
        note=_note(change, mark),
        title=f"{look.title} {change.key.labels}: {tenths(relative, sign=True)} ({limits or 'no interval'})",
    )


def _note(change: MetricChange, mark: ForestMark | None) -> str:
    if change.verdict == "no difference seen" and change.p_corrected is not None and change.p_corrected <= LEVEL:
        return "within the usual range of earlier runs"
    return "too small to matter" if mark and mark.inside else ""


def _mark(compared: ComparedRuns, change: MetricChange, axis: ChartAxis) -> ForestMark | None:
    relative, zone = change.relative, compared.zone(change)
    interval = change.relative_interval or _point(change)
    if relative is None or interval is None or zone is None:
        return None
    beyond = "right" if interval.high > axis.high else "left" if interval.low < axis.low else ""
    inside = change.relative_interval is not None and -zone <= interval.low and interval.high <= zone
    return ForestMark(
        at=axis.at(relative),
        low=axis.at(interval.low),
        high=axis.at(interval.high),
        zone_low=axis.at(-zone),
        zone_high=axis.at(zone),
        beyond=beyond,
        inside=inside,
    )


def _point(change: MetricChange) -> Interval | None:
    return Interval(change.relative, change.relative) if change.relative is not None else None


def _lone(
    changes: Sequence[MetricChange], looks: Mapping[str, TransportRecord]
) -> Iterator[tuple[MetricChange, TransportRecord, str]]:
    """Yield (change, transport, median as text) of metrics with values on one side only."""
    for change in changes:
        median = change.before.median if change.before.values else change.after.median
        yield change, _look(change.key.transport, looks), scale_of_changes(change).text(median)


def _series(key: SeriesKey) -> str:
    return " · ".join((key.scenario, key.transport, key.link))


def _named(run: Run, links: Mapping[str, str]) -> tuple[str, str, str]:
    """Return (run, link to its report or "", start) of a run."""
    started = run.manifest.started[:16].replace("T", " ")
    return run.manifest.run_id, links.get(run.manifest.run_id, ""), started or DASH


def _look(transport: str, looks: Mapping[str, TransportRecord]) -> TransportRecord:
    unknown = TransportRecord(transport, transport, colour=PALETTE[-1], marker=MARKERS_OF_FIGURES[0], title=transport)
    return looks.get(transport, unknown)
