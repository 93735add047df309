"""Draw conclusions from a run's statistics; make the content of ``report/summary.json`` and the terminal's table."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mplab.analysis.report.data import contrast_content, pooled_content
from mplab.analysis.report.headline import HeadlineAnswer, HeadlineVerdict, WithoutFlagged, answers, verdict_text
from mplab.analysis.report.view import warnings
from mplab.analysis.results.reported import FORMAT, Summary, SummaryGroup, SummarySeries
from mplab.analysis.statistics.contrast import ends
from mplab.analysis.statistics.summaries import Analysis, Group, Series, UnpairedComparison
from mplab.analysis.text import number, spread, tenths
from mplab.analysis.verdicts.budgets import JudgedLimit, judge_limits, measured_in
from mplab.analysis.verdicts.claims import Outcome, outcomes
from mplab.analysis.verdicts.findings import GroupKey, PairFinding, find
from mplab.format.record import json_of


@dataclass(frozen=True)
class Conclusions:
    """The conclusions from the statistics of a run.

    Attributes:
        warnings: sentences with facts that the reader must know before reading the numbers.
        answers: the best transport, for each headline metric, scenario and link condition.
        claims: the result for each claim of the experiment.
        budgets: the verdict on each limit of a budget, for each transport to which it applies.
        findings: key of a group → the better transport, or that none was shown to be better.
    """

    warnings: tuple[str, ...]
    answers: tuple[HeadlineAnswer, ...]
    claims: tuple[Outcome, ...]
    budgets: tuple[JudgedLimit, ...]
    findings: Mapping[GroupKey, PairFinding]


def conclude(analysis: Analysis) -> Conclusions:
    """Compute the conclusions from the statistics of a run.

    Raises:
        BudgetError: a limit cannot be converted to its metric's unit.
    """
    experiment = analysis.run.manifest.experiment
    findings = find(analysis.groups, experiment.smallest_effect)
    return Conclusions(
        warnings=tuple(warnings(analysis)),
        answers=tuple(answers(analysis, findings)),
        claims=tuple(outcomes(analysis)),
        budgets=tuple(judge_limits(experiment.budgets, measured_in(analysis.groups), experiment.seed)),
        findings=findings,
    )


@dataclass(frozen=True)
class SummaryRow:
    """A row of the table that ``mplab report`` prints: the median of a transport for a metric.

    ``best``: this transport is shown to be better. ``median``, ``interval`` and ``gain`` are formatted, or "" without a
    value.
    """

    scenario: str
    link: str
    metric: str
    labels: str
    unit: str
    transport: str
    n: int
    median: str
    interval: str
    gain: str
    headline: bool
    best: bool


def summary_content(analysis: Analysis, conclusions: Conclusions) -> dict[str, object]:
    """Return the content of ``report/summary.json``; docs/report.md describes the fields."""
    run = analysis.run
    return {
        "format": FORMAT,
        "run_id": run.manifest.run_id,
        "title": run.manifest.experiment.title or run.manifest.experiment.name,
        "finished": run.finished,
        "complete": run.complete,
        "cells": run.counts,
        "warnings": conclusions.warnings,
        "answers": [
            {
                "scenario": answer.scenario,
                "link": answer.link,
                "metric": answer.metric,
                "labels": verdict.label,
                "winner": verdict.winner.label if verdict.winner else None,
                "verdict": verdict.state,
                "sentence": verdict.sentence,
                **_numbers(verdict),
            }
            for answer in conclusions.answers
            for verdict in answer.verdicts
        ],
        "claims": [_claim(outcome) for outcome in conclusions.claims],
        "budgets": [_limit(judged) for judged in conclusions.budgets],
        "metrics": [_group(group, conclusions.findings.get(group.key)) for group in analysis.groups],
        "interfaces": [asdict(share) for share in analysis.shares],
        "not_ok": [
            {"cell": cell.id, "outcome": cell.outcome, "reasons": list(cell.reasons)}
            for cell in run.cells
            if not cell.ok
        ],
        "skipped": [{"transport": transport, "reason": reason} for transport, reason in run.skipped],
        "problems": [asdict(problem) for problem in analysis.problems],
    }


def _numbers(verdict: HeadlineVerdict) -> dict[str, object]:
    """Return the numbers of an answer; none for an answer over many labels, or without a better side."""
    finding = verdict.finding
    if finding is None:
        return {}
    without = verdict.without_flagged
    return {
        "transport": finding.sample.transport.label,
        "against": finding.reference.transport.label,
        "improvement": finding.relative,
        "improvement_interval": ends(finding.relative_interval),
        "smallest_effect": finding.smallest,
        "equivalence_interval": ends(finding.equivalence),
        "p": finding.p,
        "tests": finding.tests,
        "needed": finding.needed,
        "without_flagged": _without(without) if without else None,
    }


def _without(left: WithoutFlagged) -> dict[str, object]:
    found = left.finding
    return {
        "cells": left.cells,
        "improvement": found.relative if found else None,
        "verdict": verdict_text(found) or None,
        "winner": found.winner.transport.label if found and found.winner else None,
        "changed": left.changed,
    }


def _limit(judged: JudgedLimit) -> dict[str, object]:
    return {
        "metric": judged.budget.metric,
        "about": judged.about,
        "statistic": judged.budget.statistic,
        "verdict": judged.verdict,
        "certain": judged.certain,
        "found": judged.found,
        "limit": judged.limit,
        "unit": judged.unit,
        "text": judged.text,
    }


def summary_rows(summary: Summary) -> list[SummaryRow]:
    """Return a row for each metric and each transport with values, headline metrics first; none for those of traces."""
    groups = sorted((group for group in summary.metrics if not group.traced), key=lambda group: not group.headline)
    return [_row(group, series) for group in groups for series in group.transports if series.n]


def _claim(outcome: Outcome) -> dict[str, object]:
    return {
        **json_of(outcome.claim),
        "verdict": outcome.verdict,
        "confirmed": outcome.confirmed,
        "found": [finding.model_dump(mode="json") for finding in outcome.findings],
    }


def _row(group: SummaryGroup, series: SummarySeries) -> SummaryRow:
    interval, compared = series.interval, series.comparison
    return SummaryRow(
        scenario=group.scenario,
        link=group.link,
        metric=group.title,
        labels=" · ".join(group.labels.values()),
        unit=group.unit,
        transport=series.transport,
        n=series.n,
        median=number(series.median),
        interval=spread(*interval) if interval else "",
        gain=tenths(compared.gain, sign=True) if compared and compared.gain is not None else "",
        headline=group.headline,
        best=group.winner == series.transport,
    )


def _group(group: Group, finding: PairFinding | None) -> dict[str, object]:
    return {
        "scenario": group.scenario,
        "link": group.link,
        "metric": group.metric.name,
        "title": group.metric.title,
        "unit": group.metric.unit,
        "better": group.metric.better,
        "limits": list(group.metric.limits),
        "source": group.metric.source,
        "headline": group.metric.headline,
        "traced": group.metric.traced,
        "labels": dict(group.labels),
        "best": group.best,
        "winner": finding.winner.transport.label if finding and finding.winner else None,
        "verdict": verdict_text(finding) or None,
        "baseline": group.baseline,
        "transports": [_series(series) for series in group.series],
        "contrasts": [contrast_content(contrast) for contrast in group.contrasts],
    }


def _series(series: Series) -> dict[str, object]:
    start = {"transport": series.transport.label, "cells": series.cells, "n": len(series.values)}
    d = series.description
    if d is None:
        return start
    return {
        **start,
        "median": d.median,
        "q1": d.q1,
        "q3": d.q3,
        "mean": d.mean,
        "sd": d.sd,
        "min": d.minimum,
        "max": d.maximum,
        "interval": [d.interval.low, d.interval.high] if d.interval else None,
        "comparison": _comparison(series.comparison) if series.comparison else None,
        **({"values": series.count, "pooled": pooled_content(series.pooled)} if series.pooled else {}),
    }


def _comparison(comparison: UnpairedComparison) -> dict[str, object]:
    content = asdict(comparison)
    interval = comparison.gain_interval
    content["gain_interval"] = [interval.low, interval.high] if interval else None
    return content
