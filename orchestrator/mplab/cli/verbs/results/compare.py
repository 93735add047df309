"""Compare a run with a baseline: each metric's change, its budgets, and whether they were kept."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.report.chart import report_links
from mplab.analysis.report.comparepage import BETTER, compare_page
from mplab.analysis.report.places import comparison_name
from mplab.analysis.text import p_text, tenths
from mplab.analysis.verdicts.compare import Correction, MetricChange
from mplab.analysis.verdicts.gate import GateCheck, interval_text, scale_of_changes
from mplab.base.errors import MplabError
from mplab.base.files import replace
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import err, out, output_file, output_page, page_path, print_json, table
from mplab.cli.report_output import change_content
from mplab.format.times import time_of
from mplab.run.comparing import WINDOW, RunComparison
from mplab.run.comparing import compare as compare_runs
from mplab.run.hostside.junit import Case, checks_xml
from mplab.run.run_directory import RUNS

STYLES = {"worse": "red", "gone": "red", "better": "green", "too few": "dim", "no difference seen": "dim"}
_WIDTH = 110
"""Maximum length of a line with a change, characters; longer labels are cut."""
_SHORTEST_LABEL = 8


def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN",
            help="Run directories, or the beginnings or ends of their names. The last run is compared with all "
            "others together. A single run (the newest by default) is compared with the earlier runs of its "
            "experiment.",
            show_default=False,
        ),
    ] = None,
    *,
    window: Annotated[
        int, typer.Option(min=1, max=1000, help="Compare a single run with this number of earlier runs.")
    ] = WINDOW,
    correction: Annotated[
        Correction,
        typer.Option(
            help="Correct the p-values for the number of metrics by Holm's method (holm), by that of Benjamini and "
            "Hochberg (bh), or not (none).",
        ),
    ] = "bh",
    everything: Annotated[
        bool,
        typer.Option(
            "--all-metrics", help="Show all metrics, not only headline metrics and those that are better or worse."
        ),
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate/--no-gate", help="End with exit code 4 if a check fails (docs/regression.md).")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Write the page to this file (.html) or folder. By default, it is compare-RUN.html next to the run.",
            show_default=False,
            metavar="FILE|FOLDER",
            callback=output_page,
        ),
    ] = None,
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", help="Write the checks as JUnit XML to this file.", show_default=False, callback=output_file
        ),
    ] = None,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    paths = [find_run(name, runs, whole=True) for name in names or [""]]
    comparison = compare_runs(paths[-1], paths[:-1], runs=runs, window=window, correction=correction)
    page = _write_page(comparison, output)
    if junit is not None:
        replace(junit, _junit(comparison, correction).encode())
    if as_json:
        print_json(_content(comparison, page))
    else:
        _show(comparison, everything=everything)
        if page is not None:
            out.print(f"\nComparison: {page}", markup=False, soft_wrap=True)
    if gate:
        comparison.check()


def _junit(comparison: RunComparison, correction: Correction) -> str:
    """Return the checks as JUnit XML. Start and duration are those of the compared run."""
    run = comparison.runs.run
    facts = [("run", run.manifest.run_id), *(("baseline", old.manifest.run_id) for old in comparison.runs.baseline)]
    facts += [("experiment", run.manifest.experiment.name), ("seed", str(run.manifest.experiment.seed))]
    facts += [("correction", correction), ("kernel", run.manifest.host.kernel)]
    facts += [(f"version.{name}", text) for name, text in run.manifest.versions.items() if isinstance(text, str)]
    start = time_of(run.manifest.started)
    return checks_xml(
        f"compare {run.manifest.run_id}",
        map(_case, comparison.checks),
        started=start.timestamp() if start is not None else None,
        time_s=run.duration_s or 0.0,
        properties=[(name, value) for name, value in facts if value],
    )


def _write_page(comparison: RunComparison, output: Path | None) -> Path | None:
    """Write the page and return its path; None, with a warning, if the default folder cannot be written.

    Raises:
        MplabError: the file `output` cannot be written.
    """
    compared = comparison.runs
    run = compared.run
    page = page_path(output, run.directory.resolve().parent / comparison_name(run.manifest.run_id))
    links = report_links(page, (*compared.baseline, run))
    try:
        replace(page, compare_page(compared, comparison.checks, comparison.shifts, links).encode())
    except MplabError as error:
        if output is not None:
            raise
        err.print(f"! no page: {error}", style="yellow", markup=False, soft_wrap=True)
        return None
    return page


def _show(comparison: RunComparison, *, everything: bool) -> None:
    compared, checks = comparison.runs, comparison.checks

    for check in checks:
        if check.state == "failed" and (check.kind == "series" or check.text.endswith("→ nothing")):
            about = "" if compared.no_common_values and check.kind == "series" else f"{check.about}: "
            out.print(f"failed: {about}{check.text}", style="red", markup=False, soft_wrap=True)
    others = [run.manifest.run_id for run in compared.baseline]
    before = others[0] if len(others) == 1 else f"{len(others)} runs, {others[0]} to {others[-1]}"
    out.print(f"Before: {before}\nNow:    {compared.run.manifest.run_id}", markup=False, soft_wrap=True)
    for warning in compared.warnings:
        err.print(f"! {warning}", style="yellow", markup=False, soft_wrap=True)
    telling = [c for c in compared.changes if c.metric.headline or c.verdict in {"better", "worse", "gone"}]
    for text, style in change_lines(compared.changes if everything else telling):
        out.print(text, style=style, markup=False, soft_wrap=True)
    budgets = [check for check in checks if check.kind in {"limit", "no worse than"}]
    if budgets:
        out.print()
        rows = table("budget", "series", "found")
        for check in budgets:
            rows.add_row(check.state, check.about, check.text, style="red" if check.state == "failed" else "")
        out.print(rows)
    for shift in comparison.shifts:
        out.print(f"{shift.word} since {shift.run_id}: {shift.about}\n  {shift.text}", markup=False, soft_wrap=True)


def change_lines(changes: Sequence[MetricChange], width: int = _WIDTH) -> Iterator[tuple[str, str]]:
    """Yield (line, style) of the changes: a heading for each metric, scenario and link, and a line per series.

    No line of a series is longer than `width` characters, except with very long numbers.
    """

    def place(change: MetricChange) -> tuple[object, ...]:
        return (not change.metric.headline, change.key.scenario, change.key.link, change.key.metric)

    groups = [list(group) for _, group in groupby(changes, key=place)]
    rows = [[_row(change, group) for change in group] for group in groups]
    widths = [
        max((len(cell) for group in rows for row in group for cell in (row[n],)), default=0) for n in range(_COLUMNS)
    ]
    spare = width - sum(widths) - 2 * _COLUMNS
    for column in (0, 1):
        cut = min(max(0, -spare), max(0, widths[column] - _SHORTEST_LABEL))
        widths[column] -= cut
        spare += cut
    for group, cells in zip(groups, rows, strict=True):
        key, metric = group[0].key, group[0].metric
        notes = ", ".join(note for note in (scale_of_changes(*group).unit, BETTER[metric.better]) if note)
        yield "", ""
        yield f"{key.scenario} · {key.link} · {metric.title}" + (f" ({notes})" if notes else ""), "bold"
        for change, row in zip(group, cells, strict=True):
            cells_of_row = enumerate(zip(row, widths, strict=True))
            padded = (_fitted(cell, size, right=n in _RIGHT) for n, (cell, size) in cells_of_row)
            yield f"  {'  '.join(padded)}".rstrip(), STYLES.get(change.verdict, "")


_COLUMNS, _RIGHT = 8, frozenset({2, 3, 5, 6})
"""Number of columns in the lines of changes, and those that are aligned to the right."""


def _row(change: MetricChange, group: Sequence[MetricChange]) -> tuple[str, ...]:
    """Return label, transport, change of the median, change in percent, interval, p, numbers of values, verdict."""
    scale = scale_of_changes(*group)
    before, after = (scale.number(side.median) for side in (change.before, change.after))
    interval = interval_text(change.relative_interval)
    relative = tenths(change.relative, sign=True) if change.shift is not None else ""
    p = p_text(change.p_corrected, "p") if change.p_corrected is not None else ""
    sizes = f"n {len(change.before.values)}, {len(change.after.values)}"
    limits = f"({interval})" if interval else ""
    return (change.key.labels, change.key.transport, f"{before} → {after}", relative, limits, p, sizes, change.verdict)


def _fitted(text: str, size: int, *, right: bool) -> str:
    short = text if len(text) <= size else f"{text[: size - 1]}…"
    return short.rjust(size) if right else short.ljust(size)


def _case(check: GateCheck) -> Case:
    failure = check.text if check.state == "failed" else ""
    skipped = f"not judged: {check.text}" if check.state == "not judged" else ""
    return Case(f"compare.{check.kind.replace(' ', '-')}", check.about, failure, skipped)


def _content(comparison: RunComparison, page: Path | None) -> dict[str, object]:
    compared = comparison.runs
    return {
        "format": 1,
        "baseline": [run.manifest.run_id for run in compared.baseline],
        "run": compared.run.manifest.run_id,
        "page": str(page) if page is not None else None,
        "correction": compared.correction,
        "warnings": list(compared.warnings),
        "circumstances": [vars(item) for item in compared.circumstances],
        "missing": [series._asdict() for series in compared.missing],
        "without_values": [series._asdict() for series in compared.emptied],
        "passed": not comparison.failed,
        "checks": [vars(check) for check in comparison.checks],
        "level_changes": [vars(shift) for shift in comparison.shifts],
        "changes": [change_content(change) for change in compared.changes],
    }
