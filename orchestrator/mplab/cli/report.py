"""``mplab report``, and what is shown of an analysed run."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import MplabError
from mplab.cli.options import RUNS, JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import err, escaped, out, table
from mplab.cli.pdf import check_pdf, write_pdf


def report(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="Print it into this file, too.", show_default=False)] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the web browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show where a run's report is, and its numbers; makes it when it is not there."""
    if pdf is not None:
        check_pdf(pdf)
    path = find_run(run_name, runs)
    page = path / "report" / "index.html"
    if not page.exists():
        analyze_with_progress(path)
    show_report(path, as_json=as_json)
    if pdf is not None:
        with err.status("Printing …"):
            write_pdf(page, pdf)
        err.print(f"PDF: {pdf}", markup=False, soft_wrap=True)
    if open_it:
        webbrowser.open(page.resolve().as_uri())


def show_report(path: Path, *, as_json: bool) -> None:
    """Print the summary of an analysed run, or its JSON."""
    if as_json:
        typer.echo(escaped((path / "report" / "summary.json").read_text(encoding="utf-8").rstrip()))
    else:
        print_summary(path)


def analyze_with_progress(path: Path) -> None:
    """Analyse a run, showing what is being made."""
    from mplab.analysis.pipeline import analyze as analyze_run  # noqa: PLC0415 - slow to import, needed by few verbs

    try:
        with err.status("Analysing …") as status:
            analyze_run(path, progress=lambda p: status.update(f"Analysing: {p.step} {p.done}/{p.total}"))
    except OSError as error:
        raise MplabError(
            f"{error.filename or path}: {error.strerror}: the analysis writes into the run directory. Make it writable "
            "and make space, or analyse a copy of it"
        ) from error


def print_summary(path: Path) -> None:
    """Print the answers, the headline metrics, and where the report is."""
    from mplab.analysis.pipeline import summary, summary_json  # noqa: PLC0415 - slow to import, needed by few verbs

    content = summary_json(path)
    rows = table("scenario", "link", "metric", "transport", "n", "median", "95 % interval", "gain")
    for row in summary(path):
        if row.headline:
            metric = f"{row.metric} ({row.unit})" + (f", {row.labels}" if row.labels else "")
            style = "bold" if row.best else ""
            rows.add_row(
                row.scenario,
                row.link,
                metric,
                row.transport,
                str(row.n),
                row.median,
                row.interval,
                row.gain,
                style=style,
            )
    out.print(rows)
    for answer in content["answers"]:
        out.print(f"• {answer['sentence']}", markup=False)
    for warning in content["warnings"]:
        err.print(f"! {warning}", style="yellow", markup=False)
    out.print(f"\nReport: {path / 'report' / 'index.html'}", markup=False, soft_wrap=True)
