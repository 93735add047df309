"""Show the cells of an experiment, their order and their estimated time; nothing is run."""

from mplab.cli.options import ExperimentFile, JsonOption, LabOption, PhoneOption, RunsOption, SetOption
from mplab.cli.plan_table import show_plan
from mplab.run import planning
from mplab.run.run_directory import RUNS
from mplab.userfiles.experiments.variables import parse_given


def plan(
    file: ExperimentFile,
    *,
    lab: LabOption = "",
    phone: PhoneOption = "",
    variables: SetOption = None,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    values = parse_given(variables or ())
    show_plan(planning.plan(file, lab=lab, phone=phone, variables=values, runs=runs), as_json=as_json)
