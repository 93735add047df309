"""Make the report of a run, print its summary, convert changes of metrics to JSON.

This module imports the analysis, which is slow to import.
"""

from pathlib import Path

import typer

from mplab.analysis.statistics.effects import Interval
from mplab.analysis.verdicts.compare import MetricChange
from mplab.cli.output import err, escaped
from mplab.cli.run_display import print_summary
from mplab.run.hostside.concluding import analyze, summary_of


def show_report(path: Path, *, as_json: bool) -> None:
    """Print the summary of the report in the run directory `path`, as text or JSON."""
    if as_json:
        typer.echo(escaped((path / "report" / "summary.json").read_text(encoding="utf-8").rstrip()))
    else:
        print_summary(summary_of(path), path)


def analyze_with_progress(path: Path) -> None:
    """Analyse the run in directory `path`, and show the current step on standard error."""
    with err.status("Analysing …") as status:
        analyze(path, lambda p: status.update(f"Analysing: {p.step} {p.done}/{p.total}"))


def change_content(change: MetricChange) -> dict[str, object]:
    """Return the change of a metric between two sets of runs as a JSON object, for programs."""
    return {
        **change.key._asdict(),
        "title": change.metric.title,
        "unit": change.metric.unit,
        "headline": change.metric.headline,
        "verdict": change.verdict,
        "before": {"n": len(change.before.values), "runs": len(change.before.medians), "median": change.before.median},
        "after": {"n": len(change.after.values), "median": change.after.median},
        "shift": change.shift,
        "interval": _ends(change.interval),
        "relative": change.relative,
        "relative_interval": _ends(change.relative_interval),
        "p": change.p,
        "p_corrected": change.p_corrected,
        "test": change.test,
        "least_p": change.least_p,
        "cliffs_delta": change.cliffs_delta,
        "needed": change.needed,
        "usual": _ends(change.usual),
    }


def _ends(interval: Interval | None) -> list[float] | None:
    return [interval.low, interval.high] if interval else None
