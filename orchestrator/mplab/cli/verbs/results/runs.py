"""List the runs of a folder, the newest first: experiment, start, cells, duration, state."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mplab.cli.options import JsonOption, RunsOption
from mplab.cli.output import a_folder, duration, err, out, print_json, table
from mplab.run.listing import ListedRun, list_runs
from mplab.run.run_directory import RUNS


def runs(
    folder: Annotated[
        Path | None,
        typer.Argument(help="List the runs in this folder instead of --runs.", show_default=False, callback=a_folder),
    ] = None,
    *,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    found = list_runs(folder or runs)
    if as_json:
        print_json([{**asdict(run), "path": str(run.path), "finished": run.finished} for run in found])
        return
    if not found:
        out.print(f"{folder or runs}: no run in it; 'mplab run FILE' makes one", markup=False, soft_wrap=True)
        return
    rows = table("run", "experiment", "started", "cells ok", "duration", "state")
    for run in found:
        if not run.problem:
            rows.add_row(*_row(run))
    if rows.row_count:
        out.print(rows)
    for run in found:
        if run.problem:
            err.print(f"! {run.problem}", style="yellow", markup=False, soft_wrap=True)


def _row(run: ListedRun) -> tuple[str, ...]:
    started = run.started[:16].replace("T", " ")
    took = "" if run.duration_s is None else duration(run.duration_s)
    return run.run_id, run.experiment, started, f"{run.ok} of {run.planned}", took, run.state
