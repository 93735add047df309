"""Decide whether the 95 % intervals of a metric are narrow enough to stop the run.

The rule reads only widths, never which transport is better, so that stopping favours no transport. Checking an interval
repeatedly until it is narrow makes its coverage a little lower than nominal; the coverage becomes nominal as the
requested width goes to zero (Chow & Robbins 1965). A minimum number of blocks is required, because the first values of
a run can be alike by chance.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mplab.analysis.metric import Metric
from mplab.analysis.pipeline import plugins_of
from mplab.analysis.record.decode import make_tables
from mplab.analysis.record.run import Run
from mplab.analysis.scores.metrics import metrics_of
from mplab.analysis.scores.plugins import ScoringPlugin
from mplab.analysis.scores.scoring import CellScores, has_scores, read_cell_scores, score_cell
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.summaries import Group, Series, summarise
from mplab.format.experiment import IntervalRule

DIFFERENCES, MEDIANS = "differences", "medians"


@dataclass(frozen=True)
class Width:
    """The 95 % interval of the difference of two transports, or of one transport's median, and its relative width."""

    what: str
    """Name of the interval: ``download · baseline · 1 MB: mptcp − sptcp-wifi``."""
    n: int
    """Number of pairs (difference) or of values (median)."""
    low: float | None = None
    high: float | None = None
    percent: float | None = None
    """Half the width of the interval, in % of the median; for a difference, of the median of the reference transport.

    None: there is no interval yet, or the median is 0 and the interval has a width.
    """


@dataclass(frozen=True)
class Enough:
    """All intervals of a run, compared with its stop rule (`rule`).

    ``widths`` begins with the intervals whose relative width is not known; the others follow, the widest first.
    """

    rule: IntervalRule
    widths: tuple[Width, ...]
    missing: tuple[str, ...] = ()
    """Planned combinations without any value, each as ``scenario · link · transport``."""

    @property
    def enough(self) -> bool:
        """Return whether all planned combinations have values and all intervals are narrow enough."""
        most = self.rule.within_percent
        return (
            not self.missing
            and bool(self.widths)
            and all(width.percent is not None and width.percent <= most for width in self.widths)
        )

    @property
    def text(self) -> str:
        """Return a line that names the missing combinations, or else the widest interval and the requested width."""
        if self.missing:
            return f"no values of {self.rule.metric}: {', '.join(self.missing)}"
        if not self.widths:
            return f"no values of {self.rule.metric}"
        widest = self.widths[0]
        measured = "no interval yet" if widest.percent is None else f"± {widest.percent:.3g} %"
        kinds = "differences" if self.rule.of == DIFFERENCES else "medians"
        return (
            f"{self.rule.metric}: the widest interval of {len(self.widths)} {kinds} is {measured} ({widest.what}, "
            f"n = {widest.n}); requested: ± {self.rule.within_percent:g} %"
        )

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON fields, for an event in ``events.jsonl``."""
        return {
            "enough": self.enough,
            "widths": [asdict(width) for width in self.widths],
            "missing": list(self.missing),
        }


def look(run: Run, rule: IntervalRule) -> Enough:
    """Score the ok cells without scores, and compare the intervals of all values of the run with its stop rule.

    Args:
        run: a run that has not ended.
        rule: the stop rule, with the requested width of intervals.

    Raises:
        As `mplab.analysis.pipeline.analyze`.
    """
    plugins = plugins_of(run)
    metrics = metrics_of({scenario.label: scenario.name for scenario in run.manifest.experiment.scenarios})
    groups = summarise(run, metrics, list(_scores(run, plugins)))
    return judge(groups, rule, list(_planned(run, rule, metrics)))


def judge(groups: Sequence[Group], rule: IntervalRule, planned: Sequence[tuple[str, str, str]] = ()) -> Enough:
    """Compare the 95 % intervals of the measured values with the stop rule; return the result.

    Args:
        groups: the measured values.
        rule: the stop rule, with the requested width of intervals.
        planned: combinations (scenario, link, transport) that must have values.
    """
    own = [group for group in groups if group.metric.name == rule.metric and rule.is_about(group.scenario, group.link)]
    seen = {(group.scenario, group.link, series.transport.label) for group in own for series in group.measured}
    widths = [width for group in own for width in _widths(group, rule)]
    widths.sort(key=lambda width: -math.inf if width.percent is None else -width.percent)
    return Enough(rule, tuple(widths), tuple(" · ".join(width) for width in planned if width not in seen))


def check_rule(rule: IntervalRule, metrics: Mapping[str, Sequence[Metric]]) -> str:
    """Return an error message if the rule cannot apply to ``metrics`` (label of a scenario → its metrics), else ""."""
    about = [label for label in metrics if not rule.scenarios or label in rule.scenarios]
    metrics_of_rule = [metric for label in about for metric in metrics[label] if metric.name == rule.metric]
    if not metrics_of_rule:
        known = sorted({metric.name for label in about for metric in metrics[label]})
        return f"unknown metric {rule.metric!r}. Allowed: {', '.join(known)}"
    if rule.of == DIFFERENCES and metrics_of_rule[0].better == "neither":
        return f"{rule.metric} has no better side, so transports are not compared. Use 'of: medians'"
    return ""


def _scores(run: Run, plugins: Mapping[str, ScoringPlugin]) -> Iterator[CellScores]:
    ok = [cell for cell in run.cells if cell.ok]
    make_tables([cell for cell in ok if not has_scores(cell)], same_clock=run.manifest.same_clock)
    for cell in ok:
        if has_scores(cell) and cell.directory is not None:
            yield CellScores(cell.id, tuple(read_cell_scores(cell.directory)))
        elif cell.spec is not None:
            yield score_cell(cell, plugins[cell.spec.scenario])


def _planned(run: Run, rule: IntervalRule, metrics: Mapping[str, Sequence[Metric]]) -> Iterator[tuple[str, str, str]]:
    """Yield (scenario, link, transport) of every planned combination to which the rule applies."""
    measuring = {label for label, declared in metrics.items() if any(spec.name == rule.metric for spec in declared)}
    specs = [cell.spec for cell in run.cells if cell.spec is not None]
    for scenario, link, transport in dict.fromkeys((spec.scenario, spec.link, spec.transport) for spec in specs):
        if scenario in measuring and rule.is_about(scenario, link):
            yield scenario, link, transport


def _widths(group: Group, rule: IntervalRule) -> Iterator[Width]:
    head = " · ".join(part for part in (group.scenario, group.link, group.label_text) if part)
    if rule.of == MEDIANS:
        for series in group.measured:
            interval = series.description.interval if series.description is not None else None
            yield _width(f"{head}: {series.transport.label}", len(series.values), interval, series)
        return
    for contrast in group.contrasts:
        name = f"{head}: {contrast.transport} − {contrast.reference}"
        yield _width(name, contrast.pairs, contrast.interval, group.of(contrast.reference))


def _width(name: str, n: int, interval: Interval | None, reference: Series | None) -> Width:
    if interval is None or reference is None:
        return Width(name, n)
    median, half = abs(float(np.median(reference.numbers))), (interval.high - interval.low) / 2
    percent = 0.0 if half == 0 else 100 * half / median if median > 0 else None
    return Width(name, n, interval.low, interval.high, percent)
