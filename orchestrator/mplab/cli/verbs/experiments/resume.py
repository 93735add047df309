"""Continue a run that was interrupted or killed; complete cells are kept."""

from pathlib import Path
from typing import Annotated

import typer

from mplab.cli.options import (
    AllowHooksOption,
    AllowLabOption,
    EndsByOption,
    JsonOption,
    NoReportOption,
    QuietOption,
    RunArgument,
    RunsOption,
    find_run,
    naming_options,
)
from mplab.cli.output import err
from mplab.cli.plan_table import show_plan
from mplab.cli.run_display import RunDisplay, print_result
from mplab.run.resuming import plan_rest
from mplab.run.resuming import resume as resume_run
from mplab.run.run_directory import RUNS


def resume(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    *,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Measure the cells that are not ok again; their earlier attempts are kept."),
    ] = False,
    no_report: NoReportOption = False,
    allow_hooks: AllowHooksOption = False,
    allow_lab: AllowLabOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cells that would be run, without running them.")
    ] = False,
    quiet: QuietOption = False,
    ends_by: EndsByOption = None,
    as_json: JsonOption = False,
) -> None:
    path = find_run(run_name, runs)
    if dry_run:
        show_plan(plan_rest(path, failed=failed), as_json=as_json)
        return

    def begun(directory: Path, complete: int) -> None:
        if not quiet:
            err.print(f"{directory.resolve().name}: {complete} cells are complete", style="bold")

    with naming_options(), RunDisplay(quiet=quiet) as display:
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
    print_result(result, report=not no_report, as_json=as_json, quiet=quiet)
