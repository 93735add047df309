"""Contrasts as rows: for programs, for CSV files, for the folded tables of the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mplab.analysis.statistics.contrast import Contrast
from mplab.analysis.statistics.effects import Interval, magnitude
from mplab.analysis.statistics.power import METHOD
from mplab.analysis.statistics.summaries import Group
from mplab.analysis.text import DASH, signed, signed_share, spread
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
    "pairs",
    "shift",
    "low",
    "high",
    "interval",
    "bootstrap_low",
    "bootstrap_high",
    "p",
    "test",
    "least_p",
    "p_holm",
    "p_bh",
    "dominance",
    "cliffs_delta",
    "ks",
    "ks_p",
    "needed",
)
MOST_NEEDED = 999
"""More repetitions than that are no advice."""

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


@dataclass(frozen=True)
class ContrastRow:
    """One line of a folded table."""

    label: str
    transport: Transport
    reference: Transport
    pairs: str
    shift: str
    interval: str
    method: str
    p: str
    test: str
    p_holm: str
    p_bh: str
    dominance: str
    ks: str
    quantiles: str
    needed: str


def contrast_content(one: Contrast) -> dict[str, object]:
    """A contrast in ``summary.json``."""
    return {
        "transport": one.transport,
        "reference": one.reference,
        "pairs": one.pairs,
        "shift": one.shift,
        "interval": _ends(one.interval),
        "interval_method": one.interval_method,
        "bootstrap": _ends(one.bootstrap),
        "p": one.p,
        "test": one.test.name if one.test else "",
        "least_p": one.test.least_p if one.test else None,
        "p_holm": one.p_holm,
        "p_bh": one.p_bh,
        "dominance": one.dominance,
        "cliffs_delta": one.cliffs_delta,
        "magnitude": magnitude(one.cliffs_delta),
        "ks": one.ks[0] if one.ks else None,
        "ks_p": one.ks[1] if one.ks else None,
        "quantiles": [{"quantile": q.quantile, "shift": q.shift, "interval": _ends(q.interval)} for q in one.quantiles],
        "needed": one.needed,
        "needed_method": METHOD if one.needed is not None else "",
    }


def contrast_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Rows of ``contrasts.csv``."""
    for group in groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        for one in group.contrasts:
            test = (one.test.p, one.test.name, one.test.least_p) if one.test else (None, "", None)
            yield (
                *head,
                "yes" if group.metric.headline else "no",
                one.transport,
                one.reference,
                one.pairs,
                one.shift,
                *(_ends(one.interval) or (None, None)),
                one.interval_method,
                *(_ends(one.bootstrap) or (None, None)),
                *test,
                one.p_holm,
                one.p_bh,
                one.dominance,
                one.cliffs_delta,
                *(one.ks or (None, None)),
                one.needed,
            )


def quantile_lines(groups: Sequence[Group]) -> Iterator[tuple[object, ...]]:
    """Rows of ``quantiles.csv``."""
    for group in groups:
        head = (group.scenario, group.link, group.metric.name, group.metric.unit, group.label_text)
        for one in group.contrasts:
            for at in one.quantiles:
                ends = _ends(at.interval) or (None, None)
                yield (*head, one.transport, one.reference, at.quantile, at.value, at.reference, at.shift, *ends)


def contrast_rows(panel: Sequence[Group]) -> tuple[ContrastRow, ...]:
    """Rows of the folded table of one metric."""
    rows = []
    for group in panel:
        known = {series.transport.label: series.transport for series in group.series}
        rows += [_row(group, one, known[one.transport], known[one.reference]) for one in group.contrasts]
    return tuple(rows)


def p_text(p: float | None, prefix: str = "") -> str:
    """``0.031``, ``< 0.001``; a dash for None."""
    if p is None:
        return DASH
    sign = " = " if prefix else ""
    return f"{prefix}{sign}{p:.3f}" if p >= 0.001 else f"{prefix} < 0.001".strip()


def _row(group: Group, one: Contrast, transport: Transport, reference: Transport) -> ContrastRow:
    return ContrastRow(
        label=group.label_text,
        transport=transport,
        reference=reference,
        pairs=str(one.pairs),
        shift=signed(one.shift),
        interval=spread(one.interval.low, one.interval.high) if one.interval else DASH,
        method=one.interval_method,
        p=p_text(one.p),
        test=one.test.name if one.test else "",
        p_holm=p_text(one.p_holm),
        p_bh=p_text(one.p_bh),
        dominance=signed_share(one.dominance),
        ks=f"{one.ks[0]:.2f}, {p_text(one.ks[1], 'p')}" if one.ks else DASH,
        quantiles=" / ".join(signed(at.shift) for at in one.quantiles) or DASH,
        needed=_needed(one),
    )


def _needed(one: Contrast) -> str:
    if one.needed is None:
        return DASH
    return str(one.needed) if one.needed <= MOST_NEEDED else f"> {MOST_NEEDED}"


def _ends(interval: Interval | None) -> tuple[float, float] | None:
    return (interval.low, interval.high) if interval else None
