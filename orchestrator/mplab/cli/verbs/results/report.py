"""Print the path and the numbers of a run's report; make the report if it is missing."""

import html
import json
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from mplab.analysis.report.write import SCENARIOS
from mplab.base.browser.own import own_chromium
from mplab.base.files import replace
from mplab.base.programs import CHROMIUM
from mplab.cli.options import JsonOption, RunArgument, RunsOption, find_run
from mplab.cli.output import err, output_file
from mplab.cli.report_output import analyze_with_progress, show_report
from mplab.run.executing import report_page
from mplab.run.run_directory import RUNS


def report(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    pdf: Annotated[
        Path | None, typer.Option("--pdf", help="Also write the report as PDF to this file.", show_default=False)
    ] = None,
    open_it: Annotated[bool, typer.Option("--open", help="Open the report in the web browser.")] = False,
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
        InputError: `target` cannot be written.
    """
    output_file(target)
    CHROMIUM.path()


def write_pdf(page: Path, target: Path) -> None:
    """Print a report into a PDF file, with everything unfolded, and with the run's ID on every page.

    The pages of scenarios follow the first page. Links to other files of the run become text, because a PDF is read
    without them.

    Args:
        page: the report's ``index.html``.
        target: the PDF file; an existing one is replaced.

    Raises:
        MplabError: the report cannot be printed, or the file cannot be written.
    """
    with own_chromium() as devtools, devtools.tab(timeout_s=_TIMEOUT_S) as tab:
        chapters = []
        for chapter in _chapters(page):
            tab.open(chapter.resolve().as_uri(), timeout_s=_TIMEOUT_S)
            chapters.append(tab.evaluate("return document.querySelector('main').innerHTML;"))
        tab.open(page.resolve().as_uri(), timeout_s=_TIMEOUT_S)
        for chapter in chapters:
            tab.evaluate(f"document.querySelector('main').insertAdjacentHTML('beforeend', {json.dumps(chapter)});")
        title, run_id = tab.evaluate(_PREPARE)
        header = _MARGIN.format(left=html.escape(title), right=html.escape(run_id))
        number = '<span class="pageNumber"></span> / <span class="totalPages"></span>'
        footer = _MARGIN.format(left="mplab report", right=number)
        content = tab.pdf(header=header, footer=footer, timeout_s=_TIMEOUT_S)
    replace(target, content)


def _chapters(page: Path) -> list[Path]:
    """Return the pages of scenarios of a report in the order of the experiment."""
    files = (page.parent / SCENARIOS).glob("scenario-*.html")
    return sorted((file for file in files if not file.is_symlink()), key=lambda file: (len(file.name), file.name))


_PREPARE = """
for (const details of document.querySelectorAll('details')) details.open = true;
for (const link of document.querySelectorAll('a[href]')) {
  if (!/^(#|https:)/.test(link.getAttribute('href'))) link.removeAttribute('href');
}
return [document.querySelector('h1').textContent, document.querySelector('header code').textContent];
"""
"""JavaScript that prepares the page for printing; it returns the title and the run's ID."""

_MARGIN = (
    '<div style="width: 100%; margin: 0 14mm; display: flex; justify-content: space-between; font: 7pt sans-serif; '
    'color: #555"><span>{left}</span><span>{right}</span></div>'
)
"""HTML of the header and the footer of a page, in the margins of the page's style sheet."""
