"""Show the progress of a run: cells done, current step, time left. `mplab serve` shows it live in a browser."""

import time
from dataclasses import asdict

from rich.progress_bar import ProgressBar

from mplab.base.humanize import clock_time
from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import duration, out, print_json, table
from mplab.run.progress import status as read_status
from mplab.run.run_directory import RUNS

_BAR_WIDTH = 40
"""Width of the progress bar, characters."""


def status(run_name: RunArgument = "", runs: RunsOption = RUNS, as_json: JsonOption = False) -> None:
    state = read_status(find_run(run_name, runs))
    progress = state.progress
    if as_json:
        counts = {"done": progress.done, "remaining": progress.remaining}
        damaged = list(state.damaged)
        print_json({"run": str(state.path), **counts, **asdict(progress), "damaged": damaged, "state": state.state})
        return
    rows = table("", "")
    rows.show_header = False
    rows.add_row("run", state.path.resolve().name)
    rows.add_row("state", state.state)
    if progress.started is not None:
        rows.add_row("started", clock_time(progress.started, time.time()))
    rows.add_row(
        "cells", f"{progress.done} of {progress.total} done ({100 * progress.done // max(1, progress.total)} %)"
    )
    if out.is_terminal:
        rows.add_row("", ProgressBar(total=max(1, progress.total), completed=progress.done, width=_BAR_WIDTH))
    rows.add_row("outcomes", f"{progress.ok} ok, {progress.invalid} invalid, {progress.failed} failed")
    for problem in state.damaged.values():
        rows.add_row("damaged", problem)
    if progress.current_cell:
        rows.add_row("now", f"{progress.current_cell}: {progress.current_step or 'starting'}")
    if progress.cut:
        rows.add_row("left out", f"{progress.left_out}: {progress.cut}")
    elif progress.remaining:
        until = f", until {clock_time(time.time() + progress.eta_s, time.time())}" if state.state == "running" else ""
        rows.add_row("left", f"about {duration(progress.eta_s)}{until}")
    for transport, reason in progress.skipped:
        rows.add_row("skipped", f"{transport}: {reason}")
    out.print(rows)
    if state.state == "unknown":
        out.print("\nAnother user or machine ran it; its last event is old: run 'mplab status' there.", soft_wrap=True)
    if state.can_resume:
        out.print(f"\nContinue with: mplab resume {state.path}", markup=False, soft_wrap=True)
