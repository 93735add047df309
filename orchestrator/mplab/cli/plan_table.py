"""Print a plan: the table of its cells, and its estimated time."""

from mplab.cli.output import counted, duration, err, out, print_json, table
from mplab.format.plan import Plan
from mplab.format.record import json_of
from mplab.lab.resources import resources_of
from mplab.run.planning import PlannedRun


def show_plan(planned: PlannedRun, *, as_json: bool) -> None:
    """Print the plan of a run as a table of cells or as JSON."""
    experiment = planned.experiment
    uses = resources_of(experiment)
    if as_json:
        described = {
            "experiment": json_of(experiment.record()),
            "lab": experiment.lab.to_json(),
            "plan": json_of(planned.plan),
        }
        print_json({**described, "estimate_from_cells": planned.learnt, "resources": uses})
        return
    rows = table("#", "block", "scenario", "transport", "link", "seed")
    for cell in planned.cells:
        rows.add_row(str(cell.index), str(cell.block), cell.scenario, cell.transport, cell.link, f"{cell.seed:08x}")
    out.print(rows)
    out.print(f"\n{counted(len(planned.cells), 'cell')}, {about(planned)}")
    if experiment.lab.machines():
        where = ", ".join(f"{interface}: {shaper}" for interface, shaper in experiment.lab.where().items())
        out.print(f"shaped at {where}", markup=False)
    out.print(f"locks while it runs: {', '.join(uses)}", markup=False)
    if (rule := experiment.ending.interval) is not None:
        narrow = f"intervals of {rule.metric} within {rule.within_percent:g} %"
        out.print(f"may end after {rule.after} of {experiment.repetitions} blocks: {narrow}", markup=False)
    if experiment.hooks:
        out.print(f"commands of this host: {experiment.hooks.text()}", markup=False)
    announce_skipped(planned.plan)


def about(planned: PlannedRun) -> str:
    """Return the estimated duration of a planned run as text, with the source of the estimate."""
    learnt = planned.learnt
    source = f" (estimated from {counted(learnt, 'cell')} of earlier runs)" if learnt else ""
    return f"about {duration(planned.estimate_s)}{source}"


def announce_skipped(plan: Plan) -> None:
    """Print the transports that a plan leaves out, with the reasons, to standard error."""
    for skipped in plan.skipped:
        err.print(f"{skipped.transport} is skipped: {skipped.reason}", style="yellow")
