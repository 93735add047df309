"""Make the report of a run, and print its summary. Imports the analysis, which is slow."""

from pathlib import Path

import typer

from mplab.cli.output import err, escaped
from mplab.cli.summary import print_summary
from mplab.run.concluding import analyze, summary_of


def show_report(path: Path, *, as_json: bool) -> None:
    """Print the summary of an analysed run, as text or JSON."""
    if as_json:
        typer.echo(escaped((path / "report" / "summary.json").read_text(encoding="utf-8").rstrip()))
    else:
        print_summary(summary_of(path), path)


def analyze_with_progress(path: Path) -> None:
    """Analyse a run and show the current step."""
    with err.status("Analysing …") as status:
        analyze(path, lambda p: status.update(f"Analysing: {p.step} {p.done}/{p.total}"))
