"""Show where a run's report is, and its numbers; makes it when it is not there."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import err
from mplab.cli.report_output import analyze_with_progress, show_report
from mplab.cli.verbs.results.report.pdf import check_pdf, write_pdf
from mplab.run.executing import report_page
from mplab.run.run_directory import RUNS


def report(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    pdf: Annotated[Path | None, typer.Option("--pdf", help="Print it into this file, too.", show_default=False)] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open it in the web browser.")] = False,
    as_json: JsonOption = False,
) -> None:
    if pdf is not None:
        check_pdf(pdf)
    path = find_run(run_name, runs)
    page = report_page(path)
    if not page.exists():
        analyze_with_progress(path)
    show_report(path, as_json=as_json)
    if pdf is not None:
        with err.status("Printing …"):
            write_pdf(page, pdf)
        err.print(f"PDF: {pdf}", markup=False, soft_wrap=True)
    if open_it:
        webbrowser.open(page.resolve().as_uri())
