"""Make the rows of the report's CSV files that do not belong to a figure."""

from collections.abc import Iterator, Sequence

from mplab.analysis.report.contrast_rows import CONTRASTS_COLUMNS, QUANTILES_COLUMNS, contrast_lines, quantile_lines
from mplab.analysis.statistics.summaries import Analysis
from mplab.analysis.verdicts.claims import Outcome

Table = tuple[Sequence[str], list[tuple[object, ...]]]
STEMS = ("statistics", "contrasts", "quantiles", "values", "cells", "claims")

STATISTICS_COLUMNS = (
    "scenario",
    "link",
    "metric",
    "unit",
    "labels",
    "transport",
    "cells",
    "n",
    "median",
    "q1",
    "q3",
    "mean",
    "sd",
    "min",
    "max",
    "interval_low",
    "interval_high",
    "baseline",
    "difference",
    "gain",
    "gain_low",
    "gain_high",
    "cliffs_delta",
    "magnitude",
    "p",
)
VALUES_COLUMNS = (
    "scenario",
    "link",
    "metric",
    "unit",
    "labels",
    "transport",
    "cell",
    "repetition",
    "value",
)
CELLS_COLUMNS = ("cell", "block", "scenario", "transport", "link", "repetition", "outcome", "attempt", "reasons")


CLAIMS_COLUMNS = (
    "claim",
    "scenario",
    "link",
    "metric",
    "labels",
    "transport",
    "baseline",
    "gain",
    "gain_low",
    "gain_high",
    "claimed_low",
    "claimed_high",
    "verdict",
    "certain",
)


def tables(analysis: Analysis, claims: Sequence[Outcome]) -> dict[str, Table]:
    """Return stem of the file → (columns, rows), for each of `STEMS`."""
    return {
        "statistics": (STATISTICS_COLUMNS, list(_statistics(analysis))),
        "contrasts": (CONTRASTS_COLUMNS, list(contrast_lines(analysis.groups))),
        "quantiles": (QUANTILES_COLUMNS, list(quantile_lines(analysis.groups))),
        "values": (VALUES_COLUMNS, list(_values(analysis))),
        "cells": (CELLS_COLUMNS, list(_cells(analysis))),
        "claims": (CLAIMS_COLUMNS, list(_claims(claims))),
    }


def _statistics(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    for group in analysis.groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        for s in group.measured:
            d, c = s.description, s.comparison
            if d is None:
                continue
            interval = (d.interval.low, d.interval.high) if d.interval else (None, None)
            described = (d.n, d.median, d.q1, d.q3, d.mean, d.sd, d.minimum, d.maximum, *interval)
            compared: tuple[object, ...] = (None,) * 8
            if c is not None:
                limits = (c.gain_interval.low, c.gain_interval.high) if c.gain_interval else (None, None)
                compared = (c.baseline, c.difference, c.gain, *limits, c.cliffs_delta, c.magnitude, c.p)
            yield (*head, s.transport.label, s.cells, *described, *compared)


def _values(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    for group in analysis.groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        for series in group.measured:
            for value in series.values:
                yield (*head, series.transport.label, value.cell, value.repetition, value.value)


def _cells(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    for cell in analysis.run.cells:
        spec = cell.spec
        if spec is None:
            yield (cell.id, None, "", "", "", None, cell.outcome, None, "; ".join(cell.reasons))
            continue
        attempt = cell.record.attempt if cell.record is not None else None
        yield (
            cell.id,
            spec.block,
            spec.scenario,
            spec.transport,
            spec.link,
            spec.repetition,
            cell.outcome,
            attempt,
            "; ".join(cell.reasons),
        )


def _claims(outcomes: Sequence[Outcome]) -> Iterator[tuple[object, ...]]:
    for outcome in outcomes:
        for found in outcome.findings:
            group = found.group
            limits = (found.interval.low, found.interval.high) if found.interval else (None, None)
            yield (
                outcome.claim.text,
                group.scenario,
                group.link,
                group.metric.name,
                group.label_text,
                outcome.claim.transport,
                found.baseline.transport.label,
                found.gain,
                *limits,
                outcome.claimed.low,
                outcome.claimed.high,
                found.verdict,
                "yes" if found.certain else "no",
            )
