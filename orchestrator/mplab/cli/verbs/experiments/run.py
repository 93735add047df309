"""Run an experiment and make its report."""

from pathlib import Path
from typing import Annotated

import typer

from mplab.cli.options import (
    EndsByOption,
    ExperimentFile,
    JsonOption,
    LabOption,
    NoReportOption,
    PhoneOption,
    QuietOption,
    RunsOption,
    SetOption,
)
from mplab.cli.output import counted, err
from mplab.cli.plan_table import about, announce_skipped, show_plan
from mplab.cli.run_display import RunDisplay, print_result
from mplab.run.executing import execute
from mplab.run.planning import only_cells, plan
from mplab.run.run_directory import RUNS
from mplab.userfiles.experiments.variables import parse_given


def run(
    file: ExperimentFile,
    *,
    lab: LabOption = "",
    phone: PhoneOption = "",
    variables: SetOption = None,
    runs: RunsOption = RUNS,
    cells: Annotated[
        list[str] | None,
        typer.Option(
            "--cell", metavar="CELL", help="Run only this cell of the plan (its id or number); may be repeated."
        ),
    ] = None,
    no_report: NoReportOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan without running it, as 'mplab plan' does.")
    ] = False,
    quiet: QuietOption = False,
    run_id: Annotated[str, typer.Option(hidden=True, help="Name of the run directory.")] = "",
    ends_by: EndsByOption = None,
    as_json: JsonOption = False,
) -> None:
    planned = plan(file, lab=lab, phone=phone, variables=parse_given(variables or ()), runs=runs)
    if cells:
        planned = only_cells(planned, cells)
    if dry_run:
        show_plan(planned, as_json=as_json)
        return

    def begun(_directory: Path, _complete: int) -> None:
        if not quiet:
            cells = counted(len(planned.cells), "cell")
            err.print(f"{planned.experiment.title}: {cells}, {about(planned)}", style="bold")
            announce_skipped(planned.plan)

    with RunDisplay(quiet=quiet) as display:
        result = execute(planned, report=not no_report, run_id=run_id, ends_by=ends_by, watch=display.watch(begun))
    print_result(result, report=not no_report, as_json=as_json, quiet=quiet)
