"""Run the demo experiment in the virtual lab and make its report; first fetches Appium, if it is missing."""

from mplab.base.places import EXPERIMENTS
from mplab.cli.options import JsonOption, QuietOption, RunsOption
from mplab.cli.verbs.experiments.run import run
from mplab.cli.verbs.lab.setup import complete
from mplab.run.hostside.ready import check_ready_for
from mplab.run.planning import plan
from mplab.run.run_directory import RUNS

_FILE = EXPERIMENTS / "demo.yaml"


def demo(*, runs: RunsOption = RUNS, quiet: QuietOption = False, as_json: JsonOption = False) -> None:
    check_ready_for(plan(_FILE, runs=runs).experiment, node_packages=False)
    complete()
    run(_FILE, runs=runs, quiet=quiet, as_json=as_json)
