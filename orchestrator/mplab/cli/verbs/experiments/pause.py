"""Pause a run after its current cell, with its lab up, until 'mplab continue'."""

from mplab.cli.options import RunArgument, RunsOption, find_run
from mplab.cli.output import err
from mplab.run import control
from mplab.run.run_directory import RUNS


def pause(run_name: RunArgument = "", runs: RunsOption = RUNS) -> None:
    run = find_run(run_name, runs)
    control.pause(run)
    run_id = run.resolve().name
    err.print(f"{run_id} pauses after this cell; continue with: mplab continue {run_id}", soft_wrap=True)
