"""Let a run wait after the cell that it is at, with its lab up, until 'mplab continue'."""

from mplab.cli.options import RunArgument, RunsOption, find_run
from mplab.cli.output import err
from mplab.run import orders
from mplab.run.run_directory import RUNS


def pause(run_name: RunArgument = "", runs: RunsOption = RUNS) -> None:
    run = find_run(run_name, runs)
    orders.pause(run)
    run_id = run.resolve().name
    err.print(f"{run_id} waits after this cell; it goes on with: mplab continue {run_id}", soft_wrap=True)
