"""Prepare the texts for the report's template: tables of metrics, links and cells, and the run's circumstances."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from mplab.analysis.metric import describe_limits
from mplab.analysis.record.links import Measurement, measurements, tolerance_of
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.report.data import ContrastRow, contrast_rows, shift_scale
from mplab.analysis.statistics.contrast import Contrast
from mplab.analysis.statistics.effects import MIN_FOR_INTERVAL, Interval, magnitude
from mplab.analysis.statistics.pooled import Estimate
from mplab.analysis.statistics.summaries import Analysis, Group, Series, UnpairedComparison
from mplab.analysis.text import (
    DASH,
    HARD_SPACE,
    THIN_SPACE,
    Scale,
    duration,
    listed,
    number,
    p_text,
    percent,
    plural,
    scale_of,
    signed,
    signed_share,
    spread,
    tenths,
)
from mplab.analysis.verdicts.claims import Outcome
from mplab.analysis.verdicts.findings import GroupKey, PairFinding
from mplab.analysis.verdicts.judging import VERDICTS
from mplab.analysis.verdicts.wording import claimed_words, count_words, estimate_words, interval_note, interval_words
from mplab.format.experiment import TransportRecord
from mplab.format.finding import ClaimFinding
from mplab.format.link import interface_title
from mplab.format.runevents import CellRetried
from mplab.format.units import format_size

MAX_COMMIT = 12
BETTER_WORDS = {"lower": "lower is better", "higher": "higher is better", "neither": ""}


@dataclass(frozen=True)
class MetricRow:
    """A transport's row in the table of a metric; the numbers are formatted."""

    label: str
    rows_of_label: int
    """Number of rows that the label's table cell spans, in the first of these rows; 0 in the others."""
    transport: TransportRecord
    better: bool
    """The transport is shown to be better."""
    n: str
    median: str
    quartiles: str
    interval: str
    difference: str
    gain: str
    effect: str
    p: str


@dataclass(frozen=True)
class PooledRow:
    """A transport's row in the table of all repetitions inside cells; the numbers are formatted.

    ``effective`` is the number of independent values whose mean would have the same standard error.
    """

    label: str
    transport: TransportRecord
    cells: str
    values: str
    effective: str
    mean: str
    median: str


@dataclass(frozen=True)
class MetricTable:
    """The table of a metric in a scenario under a link condition; ``labelled``: it has a column of labels.

    ``unit`` is that of the values, ``shift_unit`` that of the differences.
    """

    scenario: str
    link: str
    metric: str
    title: str
    unit: str
    shift_unit: str
    better: str
    limits: str
    source: str
    headline: bool
    labelled: bool
    label_name: str
    rows: tuple[MetricRow, ...]
    contrasts: tuple[ContrastRow, ...]
    pooled: tuple[PooledRow, ...] = ()


@dataclass(frozen=True)
class LinkRow:
    """A row of the table of links: requested and measured values of one quantity of a link, over all cells.

    ``within`` is the number of cells within the tolerance (``4 of 5``); ``good``: all of them are; ``outside``: IDs of
    the others.
    """

    link: str
    interface: str
    quantity: str
    asked: str
    median: str
    extremes: str
    within: str
    good: bool
    outside: tuple[str, ...]


def metric_tables(analysis: Analysis, findings: Mapping[GroupKey, PairFinding]) -> list[MetricTable]:
    """Return a table for each scenario, link and metric; those of the traces have `traced_tables`."""
    return [_metric_table(panel, findings) for panel in analysis.panels(traced=False)]


@dataclass(frozen=True)
class ClaimRow:
    """A finding as a row of the table of a claim; ``of`` names scenario, link and labels.

    ``certain``: the verdict is certain after the correction over all claims. ``missing``: reason why there is no value.
    """

    scenario: str
    link: str
    of: str
    transport: TransportRecord | None
    baseline: TransportRecord | None
    n: str
    estimate: str
    interval: str
    p: str
    verdict: str
    certain: bool
    missing: str


@dataclass(frozen=True)
class ClaimTable:
    """The table of a claim; ``counts`` has the number of groups by verdict, and of those without interval, as text."""

    text: str
    source: str
    figure: str
    metric: str
    claimed: str
    width: str
    verdict: str
    certain: bool
    counts: str
    rows: tuple[ClaimRow, ...]


def claim_tables(analysis: Analysis, outcomes: Sequence[Outcome]) -> list[ClaimTable]:
    """Return a table for each claim of the experiment."""
    return [_claim_table(analysis, outcome) for outcome in outcomes]


def _claim_table(analysis: Analysis, outcome: Outcome) -> ClaimTable:
    claim = outcome.claim
    titles = (group.metric.title for group in analysis.groups if group.metric.name == claim.metric)
    verdicts = [finding.verdict for finding in outcome.findings]
    return ClaimTable(
        text=claim.text,
        source=claim.source,
        figure=claim.figure,
        metric=next(titles, claim.metric),
        claimed=claimed_words(claim, analysis.run.manifest.experiment.smallest_effect),
        width=claim.width,
        verdict=outcome.verdict,
        certain=outcome.confirmed or outcome.verdict not in VERDICTS,
        counts="; ".join(filter(None, (count_words(verdicts), interval_note(outcome.without_interval, verdicts)))),
        rows=tuple(_claim_row(analysis, outcome, finding) for finding in outcome.findings),
    )


def _claim_row(analysis: Analysis, outcome: Outcome, finding: ClaimFinding) -> ClaimRow:
    claim = outcome.claim
    scenarios = {finding.scenario for finding in outcome.findings}
    links = [finding.link] if finding.link else list(claim.links)
    link = (links[0] if len(links) == 1 else plural(len(links), "link")) if analysis.several_links and links else ""
    elsewhere = [name for name in (claim.against_scenario, claim.against_link) if name]
    parts = [finding.scenario if len(scenarios) > 1 else "", link, finding.label_text]
    of = " · ".join(part for part in parts if part) or finding.scenario or "all"
    transports = {transport.label: transport for transport in analysis.run.transports}
    cells = sorted({*finding.cells})
    return ClaimRow(
        scenario=finding.scenario,
        link=finding.link,
        of=f"{of}, against {' · '.join(elsewhere)}" if elsewhere else of,
        transport=transports.get(claim.transport) if finding.cells else None,
        baseline=transports.get(finding.against or ""),
        n=" to ".join(str(count) for count in (cells[0], cells[-1])[: len(cells)]) if cells else "0",
        estimate=estimate_words(finding),
        interval=interval_words(finding),
        p=p_text(finding.p_corrected),
        verdict=finding.verdict,
        certain=finding.confirmed or finding.verdict not in VERDICTS,
        missing=finding.missing,
    )


@dataclass(frozen=True)
class TracedRow:
    """A metric of the traces with its labels; ``medians`` has the median of each transport as text."""

    title: str
    labels: str
    unit: str
    source: str
    medians: tuple[str, ...]


@dataclass(frozen=True)
class TracedTable:
    """The metrics of the traces in a scenario under a link condition, one row each."""

    scenario: str
    link: str
    transports: tuple[TransportRecord, ...]
    rows: tuple[TracedRow, ...]


def traced_tables(analysis: Analysis) -> dict[tuple[str, str], TracedTable]:
    """Return (scenario, link) → table of the metrics of the traces."""
    tables = {}
    groups = [group for panel in analysis.panels(traced=True) for group in panel]
    for scenario, link in dict.fromkeys((group.scenario, group.link) for group in groups):
        own = [group for group in groups if (group.scenario, group.link) == (scenario, link)]
        known = {series.transport.label: series.transport for group in own for series in group.series}
        transports = tuple(transport for transport in analysis.run.transports if transport.label in known)
        rows = tuple(_traced_row(group, transports) for group in own)
        tables[scenario, link] = TracedTable(scenario, link, transports, rows)
    return tables


def _traced_row(group: Group, transports: Sequence[TransportRecord]) -> TracedRow:
    found = {series.transport.label: series.description for series in group.measured}
    medians = [found.get(transport.label) for transport in transports]
    texts = tuple(number(described.median) if described else DASH for described in medians)
    return TracedRow(group.metric.title, group.label_text, group.metric.unit, group.metric.source, texts)


def link_rows(run: Run) -> list[LinkRow]:
    """Return a row of the table of links for each link, interface and quantity that was measured."""

    def key(m: Measurement) -> tuple[str, str, str]:
        return (m.link, m.interface, m.quantity)

    return [_link_row(run, list(rows)) for _, rows in groupby(measurements(run), key=key)]


def link_verdict(run: Run) -> str:
    """Return a sentence with the number of probes whose measured value is within the tolerance."""
    probes = measurements(run)
    inside = sum(abs(m.deviation) <= tolerance_of(run, m.kind) for m in probes)
    whole = "All" if inside == len(probes) else f"{inside} of"
    return f"{whole} {plural(len(probes), 'measured value')} are within the tolerance ({_tolerances(run)})."


def circumstances(run: Run) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return (title, [(name, value), …]) of the tables on the run, the host and the versions."""
    manifest, experiment = run.manifest, run.manifest.experiment
    commit = (manifest.git.commit or "unknown")[:MAX_COMMIT]
    the_run = [
        ("Run", manifest.run_id),
        ("Experiment", experiment.name),
        ("Started", manifest.started),
        ("Duration", duration(run.duration_s)),
        ("Estimated", duration(manifest.plan.estimate_s or None)),
        ("Seed", str(experiment.seed)),
        ("Repetitions", str(experiment.repetitions)),
        ("Congestion control", ", ".join(_controls(run)) or experiment.congestion_control),
        *([("Receive buffer", format_size(size))] if (size := experiment.receive_buffer_bytes) else []),
        ("Capture", experiment.capture),
        ("Retries", str(experiment.retries)),
        ("Tolerance", _tolerances(run)),
        ("Source", commit + (" with local changes" if manifest.git.dirty else "")),
    ]
    host = [*_flat(manifest.lab.content(), "lab"), *_flat(manifest.host.content())]
    return [("The run", the_run), ("The host", host), ("Versions", list(_flat(manifest.versions)))]


def scenario_lines(run: Run) -> list[tuple[str, str]]:
    """Return (label, parameters as text) of each scenario."""
    return [
        (s.label, "; ".join(f"{name} {value}" for name, value in _flat(s.parameters)) or "no parameters")
        for s in run.manifest.experiment.scenarios
    ]


def transport_lines(run: Run) -> list[tuple[TransportRecord, str]]:
    """Return (transport, its options as text) of each transport; the text is "" without options."""
    return [(t, "; ".join(f"{name} {value}" for name, value in _flat(t.options))) for t in run.transports]


def cells_not_ok(run: Run) -> list[Cell]:
    """Return the cells that are not ok: failed, invalid, partial, missing; in this order."""
    order = {"failed": 0, "invalid": 1, "partial": 2, "missing": 3}
    return sorted((cell for cell in run.cells if not cell.ok), key=lambda cell: order.get(cell.outcome, 0))


def retries(run: Run) -> list[tuple[str, int, str]]:
    """Return (cell, number of the attempt, reason) of every attempt after which a cell was tried again."""
    attempts = [(event.cell, event.attempt, event.reason) for event in run.events_of(CellRetried)]
    for cell in run.cells:
        if cell.record is not None:
            last = cell.record.attempt
            attempts += [(cell.id, a.attempt, a.reason) for a in cell.record.attempts if a.attempt < last]
    unique = {(cell, attempt): (cell, attempt, reason) for cell, attempt, reason in attempts}
    return [unique[key] for key in sorted(unique)]


def cell_warnings(run: Run) -> list[tuple[str, str]]:
    """Return (cell ID, warning) for each disturbance of a cell that did not make the cell invalid."""
    return [(cell.id, text) for cell in run.cells if cell.record is not None for text in cell.record.warnings]


def _without_root(run: Run) -> list[str]:
    """Return a sentence for each phone without root, with the settings that were not controlled."""
    phones = [cell.record.phone for cell in run.cells if cell.record is not None]
    lacking = [(str(phone.get("name", "")), phone.get("uncontrolled")) for phone in phones]
    seen = {
        name: [str(setting) for setting in settings]
        for name, settings in lacking
        if isinstance(settings, list) and settings
    }
    return [f"{name} was used without root. Not controlled: {'; '.join(settings)}." for name, settings in seen.items()]


def warnings(analysis: Analysis) -> list[str]:
    """Return sentences with the facts that the reader must know before reading the numbers."""
    run, counts = analysis.run, analysis.run.counts
    planned = len(run.cells)
    sentences = []
    if (cut := run.cut) is not None:
        left_out = plural(len(cut.cells), "cell")
        sentences.append(f"The run ended before {left_out} of {planned} planned, by its own rules: {cut.reason}.")
    elif counts["missing"] or counts["partial"]:
        state = "This run has not finished" if not run.finished else "This run is not complete"
        left = [plural(counts[o], f"{o} cell") for o in ("missing", "partial") if counts[o]]
        sentences.append(f"{state}: {listed(left)} of {planned} planned. What follows is from the rest.")
    if not counts["ok"]:
        sentences.append("No cell is ok: there is nothing to average.")
    bad = [f"{counts[o]} {o}" for o in ("invalid", "failed") if counts[o]]
    if bad:
        share = (counts["invalid"] + counts["failed"]) / planned
        sentences.append(f"{listed(bad)} of {plural(planned, 'cell')} ({tenths(share)}) are left out of every number.")
    sentences += [f"{name} was skipped: {reason}" for name, reason in run.skipped]
    sentences += _without_root(run)
    sentences += _other_controls(run)
    overloaded = sum(bool(cell.record and cell.record.host.overloaded) for cell in run.cells if cell.ok)
    if overloaded:
        sentences.append(
            f"{overloaded} of {plural(counts['ok'], 'ok cell')} measured on an overloaded host, and are counted: "
            "see Flagged, under Cells."
        )
    if analysis.problems:
        sentences.append(f"{plural(len(analysis.problems), 'problem')} in the analysis: see Cells.")
    return sentences


def _metric_table(panel: Sequence[Group], findings: Mapping[GroupKey, PairFinding]) -> MetricTable:
    first = panel[0]
    scale = scale_of(
        first.metric.unit, [s.description.median for group in panel for s in group.series if s.description is not None]
    )
    shifts = shift_scale(panel)
    rows = []
    for group in panel:
        finding = findings.get(group.key)
        winner = finding.winner.transport.label if finding and finding.winner else None
        for position, series in enumerate(group.series):
            better = series.transport.label == winner
            rows.append(_metric_row(group, series, len(group.series) if position == 0 else 0, scale, shifts, better))
    return MetricTable(
        scenario=first.scenario,
        link=first.link,
        metric=first.metric.name,
        title=first.metric.title,
        unit=scale.unit,
        shift_unit=shifts.unit,
        better=BETTER_WORDS[first.metric.better],
        limits=describe_limits(first.metric),
        source=first.metric.source,
        headline=first.metric.headline,
        labelled=any(group.labels for group in panel),
        label_name=", ".join(name for name, _ in first.labels),
        rows=tuple(rows),
        contrasts=contrast_rows(panel),
        pooled=tuple(_pooled_rows(panel, scale)),
    )


def _pooled_rows(panel: Sequence[Group], scale: Scale) -> Iterator[PooledRow]:
    for group in panel:
        for series in group.measured:
            if series.pooled is not None:
                yield PooledRow(
                    label=group.label_text,
                    transport=series.transport,
                    cells=str(len(series.values)),
                    values=str(series.count),
                    effective=number(round(series.pooled.effective)),
                    mean=_estimate(series.pooled.mean, scale),
                    median=_estimate(series.pooled.median, scale),
                )


def _estimate(found: Estimate, scale: Scale) -> str:
    return f"{scale.number(found.value)} [{_limits(found.interval, scale)}]"


def _metric_row(  # noqa: PLR0917 - one caller
    group: Group, series: Series, rows_of_label: int, scale: Scale, shifts: Scale, better: bool
) -> MetricRow:
    d, compared = series.description, series.comparison
    contrast = group.against_baseline(series.transport.label)
    difference = "reference" if series.transport.label == group.baseline else DASH
    if contrast is not None:
        difference = _shift(contrast.scaled(shifts.factor))
    return MetricRow(
        label=group.label_text,
        rows_of_label=rows_of_label,
        transport=series.transport,
        better=better,
        n=_count(series),
        median=scale.number(d.median if d else None),
        quartiles=_limits(Interval(d.q1, d.q3), scale) if d else DASH,
        interval=_limits(d.interval, scale) if d else DASH,
        difference=difference,
        gain=_gain(compared) if compared else "",
        effect=_effect(group, compared) if compared else "",
        p=p_text(contrast.p_family) if contrast else "",
    )


def _count(series: Series) -> str:
    """Return the number of cells: ``10``; ``9 of 10`` if one lacks a value; ``10 × 5`` with five repetitions each."""
    cells = len(series.values)
    text = f"{cells} of {series.cells}" if cells < series.cells else str(cells)
    if series.pooled is None:
        return text
    sizes = sorted({len(values) for values in series.by_cell})
    each = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{text}{HARD_SPACE}×{HARD_SPACE}{each}"


def _effect(group: Group, compared: UnpairedComparison) -> str:
    """Return Cliff's delta with its magnitude and, unless it is negligible, its direction: ``−1.00 large, better``."""
    text = f"{signed_share(compared.cliffs_delta)} {compared.magnitude}"
    if compared.magnitude == magnitude(0.0) or group.metric.better == "neither":
        return text
    return f"{text}, {'better' if (compared.cliffs_delta < 0) is (group.metric.better == 'lower') else 'worse'}"


def _limits(interval: Interval | None, scale: Scale) -> str:
    if interval is None:
        return f"n < {MIN_FOR_INTERVAL}"
    return spread(interval.low * scale.factor, interval.high * scale.factor)


def _gain(compared: UnpairedComparison) -> str:
    if compared.gain is None:
        return DASH
    interval = compared.gain_interval
    limits = f" [{_points(interval.low)}, {_points(interval.high)}]" if interval else ""
    return tenths(compared.gain) + limits


def _points(fraction: float) -> str:
    return tenths(fraction).removesuffix(f"{HARD_SPACE}%")


def _shift(contrast: Contrast) -> str:
    interval = contrast.interval
    return signed(contrast.shift) + (f" [{number(interval.low)}, {number(interval.high)}]" if interval else "")


def _link_row(run: Run, rows: Sequence[Measurement]) -> LinkRow:
    first = rows[0]
    unit = "ms" if first.kind == "rtt" else "kbit/s"
    values = [m.measured for m in rows]
    tolerance = tolerance_of(run, first.kind)
    outside = tuple(m.cell for m in rows if abs(m.deviation) > tolerance)
    return LinkRow(
        link=first.link,
        interface=interface_title(first.interface),
        quantity=f"{first.quantity} ({unit})",
        asked=number(first.asked),
        median=number(float(np.median(values))),
        extremes=spread(min(values), max(values)),
        within=f"{len(rows) - len(outside)} of {len(rows)}",
        good=not outside,
        outside=outside,
    )


def _controls(run: Run) -> list[str]:
    by_node: dict[str, set[str]] = {}
    for cell in run.cells:
        if cell.record is not None:
            for node, name in cell.record.congestion_control.known().items():
                by_node.setdefault(node, set()).add(name)
    names = sorted({name for values in by_node.values() for name in values})
    if len(names) == 1:
        return [f"{names[0]} ({listed(list(by_node))})"]
    return [f"{node}: {'/'.join(sorted(values))}" for node, values in by_node.items()]


def _other_controls(run: Run) -> list[str]:
    """Return a warning for each node whose sockets did not use the requested congestion control in ok cells."""
    experiment = run.manifest.experiment
    counts: Counter[tuple[str, str, str]] = Counter()
    for cell in run.cells:
        if cell.ok and cell.record is not None:
            requested = experiment.congestion_control_of(cell.record.spec.transport)
            known = cell.record.congestion_control.known()
            counts.update((node, name, requested) for node, name in known.items())
    return [
        f"The {node} used {name} congestion control in {plural(count, 'ok cell')}; {requested} was requested."
        for (node, name, requested), count in sorted(counts.items())
        if name and name != requested
    ]


def _tolerances(run: Run) -> str:
    return f"RTT ±{percent(tolerance_of(run, 'rtt'))}, rate ±{percent(tolerance_of(run, 'rate'))}"


def _flat(content: Mapping[str, object], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield (name, value as text) of each field in nested mappings; values in bytes are converted to GiB."""
    for key, value in content.items():
        name = f"{before} {key}".strip().replace("_", " ")
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        elif isinstance(value, list | tuple):
            yield name, ", ".join(str(item) for item in value) or "none"
        elif isinstance(value, bool):
            yield name, "yes" if value else "no"
        elif key.endswith("_bytes") and isinstance(value, int | float):
            yield name.removesuffix(" bytes"), f"{value / 2**30:.1f}{THIN_SPACE}GiB"
        elif value is not None and value != "":
            yield name, str(value)
