"""``mplab run`` and ``mplab resume``."""

from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import GateError
from mplab.cli.options import (
    AllowHooksOption,
    AllowLabOption,
    ExperimentFile,
    JsonOption,
    LabOption,
    PhoneOption,
    RunArgument,
    RunsOption,
    SetOption,
    find_run,
)
from mplab.cli.output import err, print_json
from mplab.cli.run_display import RunDisplay
from mplab.cli.summary import print_summary
from mplab.cli.verbs.experiments.plan import about, announce_skipped, show_plan
from mplab.run.executing import RunResult, execute
from mplab.run.planning import plan
from mplab.run.resuming import plan_rest
from mplab.run.resuming import resume as resume_run
from mplab.run.run_directory import RUNS
from mplab.userfiles.variables import parse_given

NoReport = Annotated[bool, typer.Option("--no-report", help="Only run; 'mplab analyze' makes the report later.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what goes wrong.")]
EndsBy = Annotated[
    float | None, typer.Option(hidden=True, help="Unix seconds: no block is begun that would not end by then.")
]


def run(
    file: ExperimentFile,
    *,
    lab: LabOption = "",
    phone: PhoneOption = "",
    variables: SetOption = None,
    runs: RunsOption = RUNS,
    no_report: NoReport = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan, as 'mplab plan' does.")] = False,
    quiet: Quiet = False,
    run_id: Annotated[str, typer.Option(hidden=True, help="What the run directory is called.")] = "",
    ends_by: EndsBy = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment and make its report."""
    planned = plan(file, lab=lab, phone=phone, variables=parse_given(variables or ()), runs=runs)
    if dry_run:
        show_plan(planned, as_json=as_json)
        return

    def begun(_directory: Path, _complete: int) -> None:
        if not quiet:
            err.print(f"{planned.experiment.title}: {len(planned.cells)} cells, {about(planned)}", style="bold")
            announce_skipped(planned)

    with RunDisplay(quiet=quiet) as display:
        result = execute(planned, report=not no_report, run_id=run_id, ends_by=ends_by, watch=display.watch(begun))
    _end(result, report=not no_report, as_json=as_json, quiet=quiet)


def resume(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    *,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Make new attempts at the cells that are not ok; the earlier ones are kept."),
    ] = False,
    no_report: NoReport = False,
    allow_hooks: AllowHooksOption = False,
    allow_lab: AllowLabOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the cells that would be run.")] = False,
    quiet: Quiet = False,
    ends_by: EndsBy = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted or killed; complete cells are kept."""
    path = find_run(run_name, runs)
    if dry_run:
        show_plan(plan_rest(path, failed=failed), as_json=as_json)
        return

    def begun(directory: Path, complete: int) -> None:
        if not quiet:
            err.print(f"{directory.resolve().name}: {complete} cells are complete", style="bold")

    with RunDisplay(quiet=quiet) as display:
        result = resume_run(
            path,
            failed=failed,
            report=not no_report,
            allow_hooks=allow_hooks,
            allow_lab=allow_lab,
            ends_by=ends_by,
            watch=display.watch(begun),
        )
    if not result.resumed and not quiet:
        progress = result.progress
        name = result.path.resolve().name
        err.print(f"{name}: complete: {progress.ok} of {progress.total} cells are ok", style="bold")
    _end(result, report=not no_report, as_json=as_json, quiet=quiet)


def _end(result: RunResult, *, report: bool, as_json: bool, quiet: bool) -> None:
    """Print what came of a run, and end with its exit code."""
    progress = result.progress
    if result.resumed and err.is_terminal and not quiet:
        err.bell()
    if as_json:
        print_json(
            {
                "run": str(result.path),
                "report": str(result.report) if report else None,
                "outcomes": {"ok": progress.ok, "invalid": progress.invalid, "failed": progress.failed},
            }
        )
    elif result.summary is not None and not quiet:
        print_summary(result.summary, result.path)
    if progress.cut and not quiet:
        err.print(f"ended before {progress.left_out} of {progress.total} cells: {progress.cut}", style="yellow")
    if not progress.good:
        raise typer.Exit(1)
    if broken := result.broken_budgets:
        raise GateError(f"{result.path.name}: {len(broken)} of its budgets are broken: {'; '.join(broken)}")
