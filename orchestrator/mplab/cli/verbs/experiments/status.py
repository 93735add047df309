"""Show the progress of a run: cells done, current step, time left."""

from dataclasses import asdict

from rich.markup import escape

from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import duration, out, print_json, table
from mplab.run.progress import status as read_status
from mplab.run.run_directory import RUNS


def status(run_name: RunArgument = "", runs: RunsOption = RUNS, as_json: JsonOption = False) -> None:
    state = read_status(find_run(run_name, runs))
    progress = state.progress
    if as_json:
        counts = {"done": progress.done, "remaining": progress.remaining}
        damaged = list(state.damaged)
        print_json({"run": str(state.path), **counts, **asdict(progress), "damaged": damaged, "state": state.state})
        return
    rows = table("", "")
    rows.add_row("run", state.path.resolve().name)
    rows.add_row("state", state.state)
    rows.add_row("cells", f"{progress.done} of {progress.total} done")
    rows.add_row("outcomes", f"{progress.ok} ok, {progress.invalid} invalid, {progress.failed} failed")
    for problem in state.damaged.values():
        rows.add_row("damaged", escape(problem))
    if progress.current_cell:
        rows.add_row("now", f"{progress.current_cell}: {progress.current_step or 'starting'}")
    if progress.cut:
        rows.add_row("left out", f"{progress.left_out}: {progress.cut}")
    elif progress.remaining:
        rows.add_row("left", f"about {duration(progress.eta_s)}")
    for transport, reason in progress.skipped:
        rows.add_row("skipped", f"{transport}: {reason}")
    out.print(rows)
    if state.can_resume:
        out.print(f"\nContinue with: mplab resume {state.path}", markup=False, soft_wrap=True)
