"""Continue a run that 'mplab pause' has paused."""

from mplab.cli.options import RunArgument, RunsOption, find_run
from mplab.cli.output import err
from mplab.run import control
from mplab.run.run_directory import RUNS


def continue_(run_name: RunArgument = "", runs: RunsOption = RUNS) -> None:
    run = find_run(run_name, runs)
    control.go_on(run)
    err.print(f"{run.resolve().name} continues", soft_wrap=True)
