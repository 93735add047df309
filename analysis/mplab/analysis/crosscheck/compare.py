"""Match the flows of two tools, and compare their fields."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from mplab.analysis.crosscheck.model import (
    WAYS,
    ComparedField,
    CrossCheckReport,
    Difference,
    Endpoint,
    FlowRecord,
    Pair,
    Value,
)

SAME_START_S = 1.0
"""Maximum difference between the start times, s, of two records of one flow."""


def compare(
    report: CrossCheckReport,
    ours: Sequence[FlowRecord],
    theirs: Sequence[FlowRecord],
    fields: Sequence[ComparedField],
    *,
    optional: Callable[[FlowRecord], bool] = lambda _: False,
) -> None:
    """Compare the flows of mptrace with those of the tool, and add the results to the report.

    Args:
        report: gets the results.
        ours: mptrace's records.
        theirs: the tool's records.
        fields: the fields to compare.
        optional: returns True for a flow of mptrace that the tool need not report.
    """
    for our, their in _matched(ours, theirs, report, optional):
        report.flows += 1
        for pair, field in _pairs(our, their, fields):
            _compare_field(report, pair, field)


def _matched(
    ours: Sequence[FlowRecord],
    theirs: Sequence[FlowRecord],
    report: CrossCheckReport,
    optional: Callable[[FlowRecord], bool],
) -> Iterator[tuple[FlowRecord, FlowRecord]]:
    """Yield (mptrace's record, tool's record) of each flow: both have the same ends, and the nearest start times.

    In both records, ``a`` is the client. Flows without a partner within `SAME_START_S` go to the report.
    """
    waiting: dict[frozenset[Endpoint], list[FlowRecord]] = defaultdict(list)
    for record in sorted(theirs, key=lambda r: r.start_s):
        waiting[record.key].append(record)
    for our in sorted(ours, key=lambda r: (r.start_s, r.a)):
        candidates = waiting[our.key]
        near = min(candidates, key=lambda r: abs(r.start_s - our.start_s), default=None)
        if near is None or abs(near.start_s - our.start_s) > SAME_START_S:
            report.only_ours += [] if optional(our) else [our.text]
            continue
        candidates.remove(near)
        yield our, near if near.a == our.a else near.turned()
    report.only_theirs += [record.text for records in waiting.values() for record in records]


def _pairs(our: FlowRecord, their: FlowRecord, fields: Sequence[ComparedField]) -> Iterator[tuple[Pair, ComparedField]]:
    for field in fields:
        if field.ours in our.whole and field.theirs in their.whole:
            yield Pair(our, their), field
        elif field.ours in our.sides and field.theirs in their.sides:
            yield from ((Pair(our, their, side), field) for side in (0, 1))


def _compare_field(report: CrossCheckReport, pair: Pair, field: ComparedField) -> None:
    our, their = _value(pair.ours, field.ours, pair.side), _value(pair.theirs, field.theirs, pair.side)
    if our is None or their is None:
        return
    if _same(our, their, field):
        report.agreed[field.ours] += 1
        return
    fitting = next((d for d in field.definitions if d.fits(pair)), None)
    if fitting is not None:
        report.explained[field.ours, fitting.name] += 1
        report.definitions[fitting.name] = fitting.text
        return
    suffix = f" {WAYS[pair.side]}" if pair.side is not None else ""
    report.differences.append(Difference(pair.ours.text + suffix, field.ours, field.theirs, our, their))


def _value(record: FlowRecord, name: str, side: int | None) -> Value:
    return record.whole[name] if side is None else record.sides[name][side]


def _same(our: Value, their: Value, field: ComparedField) -> bool:
    if isinstance(our, int | float) and isinstance(their, int | float):
        allowed = max(field.tolerance, field.relative * max(abs(our), abs(their)))
        return abs(our - their) <= allowed
    return our == their
