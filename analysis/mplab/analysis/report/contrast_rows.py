"""Convert contrasts to objects of ``summary.json``, and to rows of CSV files and of the page's folded tables.

`CONTRAST_FIELDS` defines the numbers of a contrast and their names; this module only iterates over them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mplab.analysis.statistics.contrast import CONTRAST_FIELDS, Contrast, ContrastField, PageColumn, ends
from mplab.analysis.statistics.effects import Interval
from mplab.analysis.statistics.summaries import Group
from mplab.format.experiment import Transport

CONTRASTS_COLUMNS = (
    "scenario",
    "link",
    "metric",
    "unit",
    "labels",
    "headline",
    "transport",
    "reference",
    *(column for field in CONTRAST_FIELDS for column in field.csv),
)
QUANTILES_COLUMNS = (
    "scenario",
    "link",
    "metric",
    "unit",
    "labels",
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
"""Columns of the folded table."""


@dataclass(frozen=True)
class ContrastRow:
    """A contrast as a row of a folded table; ``cells`` has the text and the note of each of `PAGE_COLUMNS`."""

    label: str
    transport: Transport
    reference: Transport
    cells: tuple[tuple[str, str], ...]


def contrast_content(one: Contrast) -> dict[str, object]:
    """Return a contrast in the form of ``summary.json``."""
    values = {field.name: field.value(one) for field in CONTRAST_FIELDS}
    shown = {name: ends(value) if isinstance(value, Interval) else value for name, value in values.items()}
    return {"transport": one.transport, "reference": one.reference, **shown}


def contrast_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of ``contrasts.csv``."""
    for group in groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        headline = "yes" if group.metric.headline else "no"
        for one in group.contrasts:
            numbers = [value for field in CONTRAST_FIELDS for value in _csv_values(field, one)]
            yield (*head, headline, one.transport, one.reference, *numbers)


def quantile_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of ``quantiles.csv``."""
    for group in groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        for one in group.contrasts:
            for at in one.quantiles:
                limits = ends(at.interval) or (None, None)
                yield (*head, one.transport, one.reference, at.quantile, at.value, at.reference, at.shift, *limits)


def contrast_rows(panel: Sequence[Group]) -> tuple[ContrastRow, ...]:
    """Return the rows of the folded table of one metric."""
    rows = []
    for group in panel:
        known = {series.transport.label: series.transport for series in group.series}
        for one in group.contrasts:
            cells = tuple((column.text(one), column.note(one)) for column in PAGE_COLUMNS)
            rows.append(ContrastRow(group.label_text, known[one.transport], known[one.reference], cells))
    return tuple(rows)


def _csv_values(field: ContrastField, one: Contrast) -> Sequence[object]:
    """Return a value for each of the field's columns."""
    if not field.csv:
        return ()
    value = field.value(one)
    if isinstance(value, Interval):
        return (value.low, value.high)
    return (value,) if len(field.csv) == 1 else (None, None)
