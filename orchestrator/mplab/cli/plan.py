"""``mplab plan``."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from mplab.base.programs import MPFLEX
from mplab.cli.budgets import check_budgets
from mplab.cli.enough import check_interval
from mplab.cli.options import RUNS, ExperimentFile, JsonOption, LabOption, PhoneOption, RunsOption, SetOption, load
from mplab.cli.output import counted, duration, err, out, print_json, table
from mplab.drivers.transport import missing_reason
from mplab.format.plan import Plan
from mplab.format.record import json_of
from mplab.lab.needs import missing_on_phone
from mplab.lab.resources import resources_of
from mplab.run.blocks import make_plan
from mplab.run.learnt import learn
from mplab.userfiles.check import raise_lines
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.variables import parse_given


def plan_of(experiment: Experiment) -> Plan:
    """The plan of an experiment on this host. Raises InputError when mpflex refuses a policy file of it."""
    _check_policies(experiment)
    names = {use.name for use in experiment.transports}
    here = (lambda _name: "") if experiment.lab.real else missing_reason  # its phone's kernel is another one
    reasons = {name: here(name) or missing_on_phone(experiment.lab, name) for name in sorted(names)}
    return make_plan(experiment, skipped={name: reason for name, reason in reasons.items() if reason})


def _check_policies(experiment: Experiment) -> None:
    """As the agent would read them. Without a mpflex nothing is checked: a run needs one in any case."""
    files = {path: content for use in experiment.transports for path, content in use.files.items()}
    if not files or (mpflex := MPFLEX.find()) is None:
        return
    problems: list[str] = []
    with TemporaryDirectory(prefix="mplab-policies-") as folder:
        for path, content in files.items():
            (Path(folder) / path).parent.mkdir(exist_ok=True)
            (Path(folder) / path).write_bytes(content)
            command = [str(mpflex), "policy", "check", path]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                problems += done.stderr.strip().splitlines()
    raise_lines(problems)


def plan(
    file: ExperimentFile,
    *,
    lab: LabOption = "",
    phone: PhoneOption = "",
    variables: SetOption = None,
    runs: RunsOption = RUNS,
    as_json: JsonOption = False,
) -> None:
    """Show what an experiment would run, in which order, and for how long; nothing is touched."""
    experiment = load(file, lab, phone, parse_given(variables or ()))
    check_budgets(experiment)
    check_interval(experiment)
    show_plan(experiment, *learn(plan_of(experiment), experiment, runs), as_json=as_json)


def show_plan(experiment: Experiment, made: Plan, learnt: int, *, as_json: bool) -> None:
    """Print a plan, whose estimate is from so many cells of earlier runs, or its JSON."""
    uses = resources_of(experiment)
    if as_json:
        described = {
            "experiment": json_of(experiment.record()),
            "lab": experiment.lab.to_json(),
            "plan": made.to_json(),
        }
        print_json({**described, "estimate_from_cells": learnt, "resources": uses})
        return
    rows = table("#", "block", "scenario", "transport", "link", "seed")
    for cell in made.cells:
        rows.add_row(str(cell.index), str(cell.block), cell.scenario, cell.transport, cell.link, f"{cell.seed:08x}")
    out.print(rows)
    out.print(f"\n{counted(len(made.cells), 'cell')}, {about(made, learnt)}")
    if experiment.lab.places():
        where = ", ".join(f"{interface}: {place}" for interface, place in experiment.lab.where().items())
        out.print(f"shaped at {where}", markup=False)
    out.print(f"locks while it runs: {', '.join(uses)}", markup=False)
    if (rule := experiment.ending.interval) is not None:
        narrow = f"intervals of {rule.metric} within {rule.within_percent:g} %"
        out.print(f"may end after {rule.after} of {experiment.repetitions} blocks: {narrow}", markup=False)
    if experiment.hooks:
        out.print(f"commands of this host: {experiment.hooks.text()}", markup=False)
    announce_skipped(made)


def about(made: Plan, learnt: int) -> str:
    """How long a plan takes, and how that is known."""
    source = f" (estimated from {counted(learnt, 'cell')} of earlier runs)" if learnt else ""
    return f"about {duration(made.estimate_s)}{source}"


def announce_skipped(made: Plan) -> None:
    """Say which transports a plan leaves out, and why."""
    for skipped in made.skipped:
        err.print(f"{skipped.transport} is skipped: {skipped.reason}", style="yellow")
