"""Print the page of a report as a PDF file, with the Chromium of the virtual lab."""

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from mplab.base.browser.chromium import printing_switches
from mplab.base.errors import MplabError
from mplab.base.files import replace
from mplab.base.programs import CHROMIUM
from mplab.cli.output import check_folder

_TIMEOUT_S = 120.0


def check_pdf(target: Path) -> None:
    """Raise MplabError if the file cannot be written, LabNotReadyError if there is no Chromium."""
    check_folder(target)
    CHROMIUM.path()


def write_pdf(page: Path, target: Path) -> None:
    """Print a report into a file.

    Args:
        page: the report's ``index.html``.
        target: the PDF file; an existing one is replaced.

    Raises:
        MplabError: the report cannot be printed, or the file cannot be written.
    """
    with TemporaryDirectory(prefix="mplab-pdf-") as folder:
        made = Path(folder) / "report.pdf"
        argv = [str(CHROMIUM.path()), *printing_switches(Path(folder) / "profile", made), page.resolve().as_uri()]
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            raise MplabError(f"{page}: could not be printed within {_TIMEOUT_S:g} s") from None
        if not made.is_file():
            last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
            raise MplabError(f"{page}: could not be printed: {last[0]}")
        replace(target, made.read_bytes())
