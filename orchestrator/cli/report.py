"""``mplab analyze`` and ``mplab report``."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.options import RUNS, JsonOption, RunArgument, RunsOption, find_run
from orchestrator.cli.output import err, print_json


def analyze(run_name: RunArgument = "", runs: RunsOption = RUNS, as_json: JsonOption = False) -> None:
    """Make tables, scores, figures and report again from a run's raw data."""
    path = find_run(run_name, runs)
    analyze_with_progress(path)
    _show(path, as_json=as_json)


def report(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the web browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show where a run's report is, and its numbers; makes it when it is not there."""
    path = find_run(run_name, runs)
    page = path / "report" / "index.html"
    if not page.exists():
        analyze_with_progress(path)
    _show(path, as_json=as_json)
    if open_it:
        webbrowser.open(page.resolve().as_uri())


def _show(path: Path, *, as_json: bool) -> None:
    if as_json:
        print_json_file(path / "report" / "summary.json")
    else:
        print_summary(path)


def print_json_file(path: Path) -> None:
    """Print a JSON file as it is."""
    typer.echo(path.read_text(encoding="utf-8").rstrip())


def analyze_with_progress(path: Path) -> None:
    """Analyse a run, showing what is being made."""
    from analysis.pipeline import analyze as analyze_run  # noqa: PLC0415 - slow to import, needed by few verbs

    with err.status("Analysing …") as status:
        analyze_run(path, progress=lambda step: status.update(f"Analysing: {step}"))


def print_summary(path: Path) -> None:
    """Print the statistics as a table, and where the report is."""


__all__ = ["analyze", "analyze_with_progress", "print_json", "print_summary", "report"]
