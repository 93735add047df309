"""Make the rows of the report's CSV files that belong to no figure; convert contrasts for JSON and for the page.

A contrast is the comparison of two transports in one metric.

`CONTRAST_FIELDS` defines the numbers of a contrast and their names; this module only iterates over them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mplab.analysis.statistics.contrast import CONTRAST_FIELDS, Contrast, ContrastField, PageColumn, ends
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.summaries import HEAD_COLUMNS, Analysis, Group, Pooled
from mplab.analysis.text import Scale, scale_of
from mplab.analysis.verdicts.claims import Outcome
from mplab.analysis.verdicts.wording import claimed_words
from mplab.format.experiment import SmallestEffect, TransportRecord

Table = tuple[Sequence[str], list[tuple[object, ...]]]
STEMS = ("statistics", "contrasts", "quantiles", "values", "cells", "claims")

STATISTICS_COLUMNS = (
    *HEAD_COLUMNS,
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
    "values",
    "effective_values",
    "pooled_mean",
    "pooled_mean_low",
    "pooled_mean_high",
    "pooled_median",
    "pooled_median_low",
    "pooled_median_high",
)
VALUES_COLUMNS = (*HEAD_COLUMNS, "transport", "cell", "repetition", "value", "repeat")
CELLS_COLUMNS = ("cell", "block", "scenario", "transport", "link", "repetition", "outcome", "attempt", "reasons")


CLAIMS_COLUMNS = (
    "claim",
    "figure",
    "kind",
    "scenario",
    "link",
    "metric",
    "labels",
    "transport",
    "baseline",
    "unit",
    "estimate",
    "low",
    "high",
    "claimed",
    "verdict",
    "certain",
    "null",
    "p",
    "p_corrected",
    "confirmed",
    "missing",
)
CONTRASTS_COLUMNS = (
    *HEAD_COLUMNS,
    "headline",
    "transport",
    "reference",
    *(column for field in CONTRAST_FIELDS for column in field.csv),
)
QUANTILES_COLUMNS = (
    *HEAD_COLUMNS,
    "transport",
    "reference",
    "quantile",
    "value",
    "reference_value",
    "shift",
    "low",
    "high",
)
PAGE_COLUMNS: tuple[PageColumn, ...] = tuple(field.page for field in CONTRAST_FIELDS if field.page is not None)
"""Columns of the page's folded table of contrasts (a table that the reader opens)."""


def tables(analysis: Analysis, claims: Sequence[Outcome]) -> dict[str, Table]:
    """Return stem of the CSV file → (columns, rows), for each of `STEMS`."""
    return {
        "statistics": (STATISTICS_COLUMNS, list(_statistics(analysis))),
        "contrasts": (CONTRASTS_COLUMNS, list(contrast_lines(analysis.groups))),
        "quantiles": (QUANTILES_COLUMNS, list(quantile_lines(analysis.groups))),
        "values": (VALUES_COLUMNS, list(_values(analysis))),
        "cells": (CELLS_COLUMNS, list(_cells(analysis))),
        "claims": (CLAIMS_COLUMNS, list(_claims(claims, analysis.run.manifest.experiment.smallest_effect))),
    }


def _statistics(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    for group in analysis.groups:
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
            yield (*group.head, s.transport.label, s.cells, *described, *compared, s.count, *_pooled(s.pooled))


def _pooled(pooled: Pooled | None) -> tuple[object, ...]:
    if pooled is None:
        return (None,) * 7
    estimates = (pooled.mean, pooled.median)
    numbers = [number for each in estimates for number in (each.value, *(ends(each.interval) or (None, None)))]
    return (pooled.effective, *numbers)


def pooled_content(pooled: Pooled) -> dict[str, object]:
    """Return the statistics of all values as an entry of ``summary.json``."""
    content: dict[str, object] = {"effective_values": pooled.effective}
    for name, each in (("mean", pooled.mean), ("median", pooled.median)):
        content |= {name: each.value, f"{name}_interval": ends(each.interval)}
    return content


def _values(analysis: Analysis) -> Iterator[tuple[object, ...]]:
    for group in analysis.groups:
        for series in group.measured:
            for cell in series.values:
                for repeat, value in cell.each or ((0, cell.value),):
                    yield (*group.head, series.transport.label, cell.cell, cell.repetition, value, repeat or None)


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


def _claims(outcomes: Sequence[Outcome], smallest: SmallestEffect) -> Iterator[tuple[object, ...]]:
    for outcome in outcomes:
        claim = outcome.claim
        for finding in outcome.findings:
            yield (
                claim.text,
                claim.figure,
                claim.kind,
                finding.scenario,
                finding.link,
                claim.metric,
                finding.label_text,
                claim.transport,
                finding.against or "",
                finding.unit,
                finding.estimate,
                *(finding.interval or (None, None)),
                claimed_words(claim, smallest),
                finding.verdict,
                _YES_NO[finding.certain],
                finding.null,
                finding.p,
                finding.p_corrected,
                _YES_NO[finding.confirmed],
                finding.missing,
            )


_YES_NO = {True: "yes", False: "no"}


@dataclass(frozen=True)
class ContrastRow:
    """A row of the page's table of contrasts (comparisons of two transports).

    ``cells`` has (text, note) for each of `PAGE_COLUMNS`.
    """

    label: str
    transport: TransportRecord
    reference: TransportRecord
    cells: tuple[tuple[str, str], ...]


def contrast_content(contrast: Contrast) -> dict[str, object]:
    """Return a contrast as an entry of ``summary.json``."""
    values = {field.name: field.value(contrast) for field in CONTRAST_FIELDS}
    shown = {name: ends(value) if isinstance(value, Interval) else value for name, value in values.items()}
    return {"transport": contrast.transport, "reference": contrast.reference, **shown}


def contrast_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of ``contrasts.csv``."""
    for group in groups:
        headline = "yes" if group.metric.headline else "no"
        for contrast in group.contrasts:
            numbers = [value for field in CONTRAST_FIELDS for value in _csv_values(field, contrast)]
            yield (*group.head, headline, contrast.transport, contrast.reference, *numbers)


def quantile_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of ``quantiles.csv``."""
    for group in groups:
        for contrast in group.contrasts:
            for at in contrast.quantiles:
                limits = ends(at.interval) or (None, None)
                yield (
                    *group.head,
                    contrast.transport,
                    contrast.reference,
                    at.quantile,
                    at.value,
                    at.reference,
                    at.shift,
                    *limits,
                )


def contrast_rows(panel: Sequence[Group]) -> tuple[ContrastRow, ...]:
    """Return the rows of the page's table of contrasts for one metric, whose groups of results are in ``panel``.

    Shifts are in the unit of `shift_scale`.
    """
    rows, factor = [], shift_scale(panel).factor
    for group in panel:
        known = {series.transport.label: series.transport for series in group.series}
        for contrast in group.contrasts:
            scaled = contrast.scaled(factor)
            cells = tuple((column.text(scaled), column.note(scaled)) for column in PAGE_COLUMNS)
            rows.append(ContrastRow(group.label_text, known[contrast.transport], known[contrast.reference], cells))
    return tuple(rows)


def shift_scale(panel: Sequence[Group]) -> Scale:
    """Return the scale of the shifts of one metric."""
    return scale_of(panel[0].metric.unit, [contrast.shift for group in panel for contrast in group.contrasts])


def _csv_values(field: ContrastField, contrast: Contrast) -> Sequence[object]:
    """Return a value for each column that the field has in ``contrasts.csv``."""
    if not field.csv:
        return ()
    value = field.value(contrast)
    if isinstance(value, Interval):
        return (value.low, value.high)
    return (value,) if len(field.csv) == 1 else (None, None)
