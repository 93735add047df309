"""Compare a run with a baseline: each metric's change, its budgets, and whether they were kept."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.record.run import Run, read_run
from mplab.analysis.report.trendpage import Shift, shifts
from mplab.analysis.results.frames import Results, load, started
from mplab.analysis.verdicts.compare import ComparedRuns
from mplab.analysis.verdicts.compare import compare as compare_runs
from mplab.analysis.verdicts.gate import Check, change_text, checks, name_of
from mplab.analysis.verdicts.trend import History, histories
from mplab.base.errors import GateError, InputError
from mplab.base.files import replace
from mplab.campaign.judge import NOTHING_BEFORE
from mplab.cli.change_output import change_content
from mplab.cli.options import JsonOption, RunsOption, find_run
from mplab.cli.output import err, out, print_json, table
from mplab.run.junit import Case, checks_xml
from mplab.run.run_directory import RUNS

WINDOW = 10
STYLES = {"worse": "red", "gone": "red", "better": "green", "too few": "dim", "no difference seen": "dim"}


class Correction(StrEnum):
    """How p-values are corrected for the number of metrics."""

    HOLM = "holm"
    BH = "bh"
    NONE = "none"


def compare(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BASELINE… RUN]",
            help="Runs: directories, or the beginnings or ends of their names. The last one is compared with all "
            "others together. One alone (the newest by default) is compared with those of the same experiment before "
            "it.",
            show_default=False,
        ),
    ] = None,
    *,
    window: Annotated[
        int, typer.Option(min=1, max=1000, help="How many earlier runs one run is compared with.")
    ] = WINDOW,
    correction: Annotated[
        Correction,
        typer.Option(
            help="Of p-values for the number of metrics: Holm's method, Benjamini and Hochberg's, or none.",
        ),
    ] = Correction.BH,
    everything: Annotated[
        bool, typer.Option("--all", help="Show all metrics; headlines, and what got worse or better, by default.")
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate/--no-gate", help="End with exit code 4 when a check failed; docs/regression.md.")
    ] = True,
    junit: Annotated[
        Path | None, typer.Option("--junit", help="Write the checks as JUnit XML to this file.", show_default=False)
    ] = None,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    baseline, run = _sides(names or [], runs, window)
    compared = compare_runs(baseline, run, correction.value)
    past = _histories(baseline, run)
    found, shifts = checks(compared, past), _shifts(past)
    if junit is not None:
        replace(junit, checks_xml(f"compare {run.manifest.run_id}", map(_case, found)).encode())
    if as_json:
        print_json(_content(compared, found, shifts))
    else:
        _show(compared, found, shifts, everything=everything)
    failed = [check for check in found if check.state == "failed"]
    if failed and gate:
        first = f"{failed[0].about}: {failed[0].text}"
        more = f"; and {len(failed) - 1} more" if len(failed) > 1 else ""
        raise GateError(f"{run.manifest.run_id}: {len(failed)} of {len(found)} checks failed: {first}{more}")


def _sides(names: Sequence[str], folder: Path, window: int) -> tuple[list[Run], Run]:
    """The baseline, oldest first, and the run."""

    paths = [find_run(name, folder) for name in names]
    run = read_run(paths[-1] if paths else find_run("", folder))
    if len(paths) > 1:
        if len({path.resolve() for path in paths}) < len(paths):
            raise InputError("a run cannot be compared with itself: one is named twice")
        return sorted(map(read_run, paths[:-1]), key=started), run
    results = load(folder)
    name = run.manifest.experiment.name
    earlier = [
        other
        for other in results.records
        if other.manifest.experiment.name == name
        and started(other) < started(run)
        and (other.directory / "report" / "summary.json").is_file()
    ]
    if not earlier:
        raise InputError(f"{folder}: {NOTHING_BEFORE} {name} before {run.manifest.run_id} to compare it with")
    return earlier[-window:], run


def _histories(baseline: Sequence[Run], run: Run) -> list[History]:
    """The headline metrics over the runs that are compared."""

    return histories(Results((*baseline, run)), run.manifest.experiment.name)


def _shifts(past: Sequence[History]) -> list[Shift]:
    """Where their levels changed."""

    return list(shifts(past))


def _show(compared: ComparedRuns, checks: Sequence[Check], shifts: Sequence[Shift], *, everything: bool) -> None:

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
    for shift in shifts:
        out.print(f"• {shift.word} since {shift.run_id}: {shift.about}: {shift.text}", markup=False, soft_wrap=True)


def _case(check: Check) -> Case:
    failure = check.text if check.state == "failed" else ""
    skipped = f"not judged: {check.text}" if check.state == "not judged" else ""
    return Case(f"compare.{check.kind.replace(' ', '-')}", check.about, failure, skipped)


def _content(compared: ComparedRuns, checks: Sequence[Check], shifts: Sequence[Shift]) -> dict[str, object]:
    return {
        "format": 1,
        "baseline": [run.manifest.run_id for run in compared.baseline],
        "run": compared.run.manifest.run_id,
        "correction": compared.correction,
        "warnings": list(compared.warnings),
        "missing": [series._asdict() for series in compared.missing],
        "passed": all(check.state != "failed" for check in checks),
        "checks": [vars(check) for check in checks],
        "level_changes": [vars(shift) for shift in shifts],
        "changes": [change_content(change) for change in compared.changes],
    }
