"""Draw headline and claimed metrics, and the share of each path, over a swept quantity: a line per transport."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from mplab.analysis.figures.kinds import RunFigure
from mplab.analysis.figures.shapes.common import paged
from mplab.analysis.figures.style import (
    LINE_WIDTH,
    LOG_FROM,
    MARKER_SIZE,
    QUARTERS,
    Canvas,
    Drawing,
    axis_title,
    direction,
    facet_columns,
    facet_rows,
    log_axis,
    title_below,
)
from mplab.analysis.metric import Labels
from mplab.analysis.statistics.effects import Interval, seed_of
from mplab.analysis.statistics.pooled import estimate
from mplab.analysis.statistics.resampling import CellStatistic
from mplab.analysis.statistics.summaries import Analysis, Group, Series
from mplab.analysis.statistics.sweep import Sweep, sweep_of
from mplab.analysis.text import slug
from mplab.format.experiment import TransportRecord
from mplab.format.link import interface_title

TITLE = "Course over the link conditions"
_MEANING = {"median": "Median of the cells", "mean": "Mean of the cells' means", "pooled": "Median of all values"}
COLUMNS = ("scenario", "metric", "unit", "labels", "transport", "link", "x", "n", "value", "low", "high")


@dataclass(frozen=True)
class SweepPoint:
    """A value of one transport under one link condition.

    Attributes:
        link: name of the link condition.
        x: value of the swept quantity.
        n: number of cells.
        value: statistic of the claims on the metric, or mean of their shares.
        interval: interval around ``value``, or None.
    """

    link: str
    x: float
    n: int
    value: float
    interval: Interval | None


@dataclass(frozen=True)
class SweepFacet:
    """One panel of a figure: a line of points per transport."""

    title: str
    lines: tuple[tuple[TransportRecord, tuple[SweepPoint, ...]], ...]


def draw(analysis: Analysis) -> Iterable[Drawing]:
    """Yield a drawing for each scenario and metric, and one for each scenario with shares of bytes.

    The metrics are the headline metrics, and those of the experiment's claims. Nothing is yielded unless the link
    conditions of the run are a sweep (`sweep_of`).
    """
    sweep = sweep_of(analysis.run.manifest.experiment.links)
    if sweep is None:
        return
    claimed = {claim.metric: claim.statistic for claim in analysis.run.manifest.experiment.claims}
    by_metric: dict[tuple[str, str], list[Group]] = {}
    for group in analysis.groups:
        if group.metric.headline or group.metric.name in claimed:
            by_metric.setdefault((group.scenario, group.metric.name), []).append(group)
    for (_, metric), groups in by_metric.items():
        yield from _of_metric(analysis, sweep, groups, claimed.get(metric, "median"))
    for scenario in dict.fromkeys(share.scenario for share in analysis.shares):
        yield from _of_shares(analysis, sweep, scenario)


def _of_metric(analysis: Analysis, sweep: Sweep, groups: Sequence[Group], summary: CellStatistic) -> Iterator[Drawing]:
    scenario, metric = groups[0].scenario, groups[0].metric
    name = metric.name
    seed = analysis.run.manifest.experiment.seed
    facets = [
        facet
        for labels in dict.fromkeys(group.labels for group in groups)
        if (facet := _facet(sweep, labels, [g for g in groups if g.labels == labels], summary, seed)) is not None
    ]
    for stem, page in paged(slug(scenario, name), facets, "sweep"):
        yield Drawing(
            stem=stem,
            section="gain",
            title=f"{scenario}: {metric.title.lower()} by {_inside(sweep.title)}",
            caption=f"{_MEANING[summary]} with its 95 % interval. {direction(metric)}".strip(),
            svg=_svg(sweep, page, stem, f"{scenario} · {metric.title}", axis_title(metric)),
            columns=COLUMNS,
            rows=list(_rows(scenario, name, metric.unit, page)),
            scenario=scenario,
            metric=name,
        )


def _facet(
    sweep: Sweep, labels: Labels, groups: Sequence[Group], summary: CellStatistic, seed: int
) -> SweepFacet | None:
    by_link = {group.link: group for group in groups}
    transports = {s.transport.label: s.transport for group in groups for s in group.measured}
    lines = []
    for label, transport in transports.items():
        points = []
        for link, x in sweep.positions.items():
            if (group := by_link.get(link)) is not None and (series := group.of(label)) is not None:
                points.append(_point(link, x, series, summary, seed_of(seed, "sweep", *group.key, label)))
        lines.append((transport, tuple(points)))
    return SweepFacet(" · ".join(value for _, value in labels), tuple(lines)) if lines else None


def _point(link: str, x: float, series: Series, summary: CellStatistic, seed: int) -> SweepPoint:
    """Return the point of a transport, with the numbers of the tables where these have them."""
    description, pooled = series.description, series.pooled
    if summary == "median" and description is not None:
        return SweepPoint(link, x, description.n, description.median, description.interval)
    if pooled is not None:
        found = pooled.mean if summary == "mean" else pooled.median
    else:
        found = estimate(series.by_cell, summary, seed)
    return SweepPoint(link, x, found.cells, found.value, found.interval)


def _of_shares(analysis: Analysis, sweep: Sweep, scenario: str) -> Iterator[Drawing]:
    shares = [share for share in analysis.shares if share.scenario == scenario]
    looks = {transport.label: transport for transport in analysis.run.transports if not transport.single_path}
    facets = []
    for interface in dict.fromkeys(share.interface for share in shares):
        of_interface = {(share.transport, share.link): share for share in shares if share.interface == interface}
        lines = []
        for label, transport in looks.items():
            points = [
                SweepPoint(link, x, s.cells, s.share, Interval(s.lowest, s.highest))
                for link, x in sweep.positions.items()
                if (s := of_interface.get((label, link)))
            ]
            if points:
                lines.append((transport, tuple(points)))
        if lines:
            facets.append(SweepFacet(interface_title(interface), tuple(lines)))
    for stem, page in paged(slug(scenario, "bytes"), facets, "sweep"):
        yield Drawing(
            stem=stem,
            section="share",
            title=f"{scenario}: share of the bytes by {_inside(sweep.title)}",
            caption="Mean of the cells' shares in the unique payload at the phone; lines: smallest and largest share.",
            svg=_svg(sweep, page, stem, f"{scenario} · Bytes per interface", "Share of the bytes", shares=True),
            columns=COLUMNS,
            rows=list(_rows(scenario, "share of bytes", "", page)),
            scenario=scenario,
        )


def _svg(
    sweep: Sweep, facets: Sequence[SweepFacet], stem: str, title: str, y_title: str, *, shares: bool = False
) -> str:
    with Canvas(title, 0.6 + 2.2 * facet_rows(len(facets))) as canvas:
        all_axes = canvas.facets(len(facets), sharex=True)
        for index, (axes, facet) in enumerate(zip(all_axes, facets, strict=True)):
            axes.set_title(facet.title)
            for transport, points in facet.lines:
                _line(axes, transport, points)
            axes.set_xlabel(f"{sweep.title} ({sweep.unit})")
            axes.locator_params(axis="x", nbins=5)
            own = [point.value for _, points in facet.lines for point in points]
            if shares:
                axes.set_ylim(-0.03, 1.05)
                axes.set_yticks(*QUARTERS)
            elif min(own) > 0 and max(own) / min(own) >= LOG_FROM and log_axis(axes, "y"):
                axes.set_title(f"{facet.title}, log scale".removeprefix(", "))
            else:
                axes.locator_params(axis="y", nbins=5)
                if min(own) >= 0:
                    axes.set_ylim(bottom=0)
            if index % facet_columns() == 0:
                axes.set_ylabel(y_title)
        title_below(canvas, all_axes)
        canvas.legend(_handles(facets))
        return canvas.svg(stem)


def _line(axes: Axes, transport: TransportRecord, points: Sequence[SweepPoint]) -> None:
    colour = transport.colour
    for point in points:
        if point.interval is not None:
            axes.plot([point.x] * 2, [point.interval.low, point.interval.high], color=colour, linewidth=1.0, alpha=0.7)
    axes.plot(
        [point.x for point in points],
        [point.value for point in points],
        color=colour,
        linewidth=LINE_WIDTH,
        marker=transport.marker,
        markersize=MARKER_SIZE,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )


def _handles(facets: Sequence[SweepFacet]) -> list[Line2D]:
    looks: Mapping[str, TransportRecord] = {t.label: t for facet in facets for t, _ in facet.lines}
    return [
        Line2D([], [], color=t.colour, marker=t.marker, linewidth=LINE_WIDTH, label=t.title) for t in looks.values()
    ]


def _rows(scenario: str, metric: str, unit: str, facets: Sequence[SweepFacet]) -> Iterator[tuple[object, ...]]:
    for facet in facets:
        for transport, points in facet.lines:
            for point in points:
                low, high = (point.interval.low, point.interval.high) if point.interval else (None, None)
                head = (scenario, metric, unit, facet.title, transport.label, point.link)
                yield (*head, point.x, point.n, point.value, low, high)


def _inside(title: str) -> str:
    """Return a title as the middle of a sentence: ``loss on LTE``."""
    return title[:1].lower() + title[1:]


FIGURE = RunFigure(order=15, title=TITLE, draw=draw, stems=("sweep",))
