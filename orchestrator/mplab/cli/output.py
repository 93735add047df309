"""Print results to standard output, and progress and errors to standard error.

Texts may come from runs, bundles and captures of other users. They are printed without markup and emoji, and with
control characters escaped.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from mplab.analysis.text import UNPRINTABLE
from mplab.base.errors import InputError, MplabError
from mplab.base.humanize import counted, duration

__all__ = [
    "check_folder",
    "check_page",
    "counted",
    "duration",
    "err",
    "out",
    "page_path",
    "print_json",
    "table",
    "writing",
]

_PIPE_WIDTH = 120


def escaped(text: str) -> str:
    r"""Return ``text`` with the JSON escape, like ``\u001b``, for each character that could control a terminal."""
    return UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


class _Console(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render like the base class, but with `escaped` text; control codes of rich itself stay."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else escaped(text), style, control)


def _console(*, stderr: bool) -> Console:
    """Return a console for standard output or error.

    It is as wide as the terminal; without a terminal, wide enough for mplab's tables.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


out = _console(stderr=False)
err = _console(stderr=True)


@contextlib.contextmanager
def writing(file: Path) -> Iterator[None]:
    """Turn an OSError in the block into an MplabError that names the output file `file`."""
    try:
        yield
    except OSError as error:
        raise MplabError(f"{file}: cannot be written: {error.strerror or error}") from error


def check_folder(file: Path) -> None:
    """Raise MplabError if the folder of an output file does not exist.

    Call this before the work whose result is written to the file.
    """
    if not file.parent.is_dir():
        raise MplabError(f"{file}: cannot be written: there is no folder {file.parent}")


_PAGES = {".html", ".htm"}


def check_page(output: Path | None) -> None:
    """Check the path of a page that `page_path` will return, before the work whose result is written there.

    Raises:
        InputError: `output` is neither a file ``….html`` in a folder that exists, nor a folder that can be created.
    """
    if output is None or output.is_dir():
        return
    if not output.parent.is_dir():
        raise InputError(f"{output}: cannot be written: there is no folder {output.parent}")
    if output.suffix not in _PAGES and output.exists():
        raise InputError(f"{output}: cannot be written: it is a file that is no page. Name a file ….html or a folder")


def page_path(output: Path | None, default: Path) -> Path:
    """Return the file of a page: `output`, a file called like `default` in the folder `output`, or `default`.

    A folder that does not exist is created. `output` is a file if its name ends with ``.html``.

    Raises:
        MplabError: the folder cannot be created.
    """
    if output is None or (output.suffix in _PAGES and not output.is_dir()):
        return output or default
    with writing(output):
        output.mkdir(exist_ok=True)
    return output / default.name


def print_json(value: object) -> None:
    """Print a JSON document."""
    out.print_json(json.dumps(value, default=str), indent=1)


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table with these columns, in the style of all tables that mplab prints."""
    rows = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
    for column in columns:
        rows.add_column(column, overflow="fold")
    return rows
