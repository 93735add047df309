"""Compare a run with a baseline: each metric's change, its budgets, and whether they were kept."""

from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.verdicts.compare import Correction
from mplab.analysis.verdicts.gate import GateCheck, change_text, name_of
from mplab.base.files import replace
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import err, out, output_file, print_json, table
from mplab.cli.report_output import change_content
from mplab.run.comparing import WINDOW, RunComparison
from mplab.run.comparing import compare as compare_runs
from mplab.run.hostside.junit import Case, checks_xml
from mplab.run.run_directory import RUNS

STYLES = {"worse": "red", "gone": "red", "better": "green", "too few": "dim", "no difference seen": "dim"}


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
    junit: Annotated[
        Path | None,
        typer.Option(
            "--junit", help="Write the checks as JUnit XML to this file.", show_default=False, callback=output_file
        ),
    ] = None,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    paths = [find_run(name, runs) for name in names or [""]]
    comparison = compare_runs(paths[-1], paths[:-1], runs=runs, window=window, correction=correction)
    if junit is not None:
        cases = checks_xml(f"compare {comparison.runs.run.manifest.run_id}", map(_case, comparison.checks))
        replace(junit, cases.encode())
    if as_json:
        print_json(_content(comparison))
    else:
        _show(comparison, everything=everything)
    if gate:
        comparison.check()


def _show(comparison: RunComparison, *, everything: bool) -> None:
    compared, checks = comparison.runs, comparison.checks

    others = [run.manifest.run_id for run in compared.baseline]
    before = others[0] if len(others) == 1 else f"{len(others)} runs, {others[0]} to {others[-1]}"
    out.print(f"Before: {before}\nNow:    {compared.run.manifest.run_id}\n", markup=False, soft_wrap=True)
    for check in checks:
        if check.kind == "series":
            about = "" if compared.no_common_values else f"{check.about}: "
            out.print(f"failed: {about}{check.text}", style="red", markup=False, soft_wrap=True)
    for warning in compared.warnings:
        err.print(f"! {warning}", style="yellow", markup=False, soft_wrap=True)
    rows = table("verdict", "what", "change", "n")
    for change in compared.changes:
        telling = change.metric.headline or change.verdict in {"better", "worse", "gone"}
        if everything or telling:
            style = STYLES.get(change.verdict, "")
            sizes = f"{len(change.before.values)}, {len(change.after.values)}"
            rows.add_row(change.verdict, name_of(change), change_text(change), sizes, style=style)
    out.print(rows)
    budgets = [check for check in checks if check.kind in {"limit", "no worse than"}]
    if budgets:
        out.print()
        rows = table("budget", "what", "found")
        for check in budgets:
            rows.add_row(check.state, check.about, check.text, style="red" if check.state == "failed" else "")
        out.print(rows)
    for shift in comparison.shifts:
        out.print(f"• {shift.word} since {shift.run_id}: {shift.about}: {shift.text}", markup=False, soft_wrap=True)


def _case(check: GateCheck) -> Case:
    failure = check.text if check.state == "failed" else ""
    skipped = f"not judged: {check.text}" if check.state == "not judged" else ""
    return Case(f"compare.{check.kind.replace(' ', '-')}", check.about, failure, skipped)


def _content(comparison: RunComparison) -> dict[str, object]:
    compared = comparison.runs
    return {
        "format": 1,
        "baseline": [run.manifest.run_id for run in compared.baseline],
        "run": compared.run.manifest.run_id,
        "correction": compared.correction,
        "warnings": list(compared.warnings),
        "missing": [series._asdict() for series in compared.missing],
        "passed": not comparison.failed,
        "checks": [vars(check) for check in comparison.checks],
        "level_changes": [vars(shift) for shift in comparison.shifts],
        "changes": [change_content(change) for change in compared.changes],
    }
