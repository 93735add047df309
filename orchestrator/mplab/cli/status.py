"""``mplab status``."""

from dataclasses import asdict, replace

from rich.markup import escape

from mplab.base.lock import is_locked
from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import duration, out, print_json, table
from mplab.format.events import read_events
from mplab.format.runevents import RunEvent
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RUNS, RunDirectory


def status(run_name: RunArgument = "", runs: RunsOption = RUNS, as_json: JsonOption = False) -> None:
    """Say how far a run is: cells done, what runs now, time left."""
    directory = RunDirectory.open(find_run(run_name, runs))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    damaged = directory.damaged_cells()
    lost = sorted(progress.outcomes.keys() - directory.complete_cells().keys())
    progress = replace(progress, outcomes={id_: one for id_, one in progress.outcomes.items() if id_ not in lost})
    killed = progress.state in {"running", "paused"} and not is_locked(directory.lock_name)
    state = "killed" if killed else progress.state
    if as_json:
        counts = {"done": progress.done, "remaining": progress.remaining}
        print_json({"run": str(directory.path), **counts, **asdict(progress), "damaged": lost, "state": state})
        return
    rows = table("", "")
    rows.add_row("run", directory.run_id)
    rows.add_row("state", state)
    rows.add_row("cells", f"{progress.done} of {progress.total} done")
    rows.add_row("outcomes", f"{progress.ok} ok, {progress.invalid} invalid, {progress.failed} failed")
    for cell in lost:
        rows.add_row("damaged", escape(damaged.get(cell, f"{directory.cell_dir(cell)}: no such directory")))
    if progress.current_cell:
        rows.add_row("now", f"{progress.current_cell}: {progress.current_step or 'starting'}")
    if progress.cut:
        rows.add_row("left out", f"{progress.left_out}: {progress.cut}")
    elif progress.remaining:
        rows.add_row("left", f"about {duration(progress.eta_s)}")
    for transport, reason in progress.skipped:
        rows.add_row("skipped", f"{transport}: {reason}")
    out.print(rows)
    if progress.cut or lost or state in {"killed", "interrupted"}:
        out.print(f"\nGo on with: mplab resume {directory.path}", markup=False, soft_wrap=True)
