"""Print the path and the numbers of a run's report; make the report if it is missing."""

import subprocess
import webbrowser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from mplab.base.browser.chromium import printing_switches
from mplab.base.errors import MplabError
from mplab.base.files import replace
from mplab.base.programs import CHROMIUM
from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import check_folder, err
from mplab.cli.report_output import analyze_with_progress, show_report
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


_TIMEOUT_S = 120.0


def check_pdf(target: Path) -> None:
    """Check that a PDF can be made.

    Raises:
        LabNotReadyError: Chromium, which prints the PDF, is not installed.
        MplabError: the folder of `target` does not exist.
    """
    check_folder(target)
    CHROMIUM.path()


def write_pdf(page: Path, target: Path) -> None:
    """Print a report into a PDF file.

    Args:
        page: the report's ``index.html``.
        target: the PDF file; an existing one is replaced.

    Raises:
        MplabError: the report cannot be printed, or the file cannot be written.
    """
    with TemporaryDirectory(prefix="mplab-pdf-") as folder:
        pdf = Path(folder) / "report.pdf"
        argv = [str(CHROMIUM.path()), *printing_switches(Path(folder) / "profile", pdf), page.resolve().as_uri()]
        try:
            result = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise MplabError(f"{page}: could not be printed within {_TIMEOUT_S:g} s") from None
        if not pdf.is_file():
            last = result.stderr.strip().splitlines()[-1:] or [f"exit code {result.returncode}"]
            raise MplabError(f"{page}: could not be printed: {last[0]}")
        replace(target, pdf.read_bytes())
