"""Print results to standard output, and progress and errors to standard error.

Texts may come from runs, bundles and captures of other users. They are printed without markup and emoji, and with
control characters escaped.
"""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from mplab.analysis.text import UNPRINTABLE
from mplab.base.errors import InputError
from mplab.base.files import explained
from mplab.base.humanize import counted, duration

__all__ = [
    "a_folder",
    "counted",
    "duration",
    "err",
    "out",
    "output_file",
    "output_folder",
    "output_page",
    "page_path",
    "print_json",
    "table",
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


def output_file(file: Path | None) -> Path | None:
    """Return the output file of an option unchanged: a callback of typer, which checks the path before any work.

    Raises:
        InputError: the path is a folder, its folder does not exist, or it must not be written.
    """
    if file is not None:
        if file.is_dir():
            raise InputError(f"{file}: cannot be written: it is a folder. Name a file in it")
        if not file.parent.is_dir():
            what = "is a file" if file.parent.exists() else "does not exist"
            raise InputError(f"{file}: cannot be written: the folder {file.parent} {what}")
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise InputError(f"{file}: cannot be written: you may not write there")
    return file


def output_folder(folder: Path | None) -> Path | None:
    """Return the output folder of an option unchanged; it can be one that does not exist yet. See `output_file`.

    Raises:
        InputError: the path, or a part of it, is a file, or it must not be written.
    """
    if folder is not None and a_folder(folder):
        there = _nearest(folder)
        if not os.access(there, os.W_OK):
            raise InputError(f"{folder}: cannot be written: you may not write in {there}")
    return folder


def a_folder(path: Path | None) -> Path | None:
    """Return the folder of an option unchanged; it can be one that does not exist yet. A callback of typer.

    Raises:
        InputError: the path, or a part of it, is a file.
    """
    if path is not None and not (there := _nearest(path)).is_dir():
        what = "is a file" if there == path else f"{there} is a file"
        raise InputError(f"{path}: {what}, and a folder is needed")
    return path


def _nearest(path: Path) -> Path:
    """Return the path, or the nearest of its parents that exists."""
    return next(one for one in (path, *path.parents, Path.cwd()) if one.exists())


_PAGES = {".html", ".htm"}


def output_page(output: Path | None) -> Path | None:
    """Return the file or folder of a page unchanged, see `page_path`: a callback of typer.

    Raises:
        InputError: as `output_file` for a file ``….html``, else as `output_folder`.
    """
    return output_file(output) if output is not None and _is_page(output) else output_folder(output)


def page_path(output: Path | None, default: Path) -> Path:
    """Return the file of a page: `output`, a file called like `default` in the folder `output`, or `default`.

    A folder that does not exist is created. `output` is a file if its name ends with ``.html``.

    Raises:
        MplabError: the folder cannot be created.
    """
    if output is None or _is_page(output):
        return output or default
    with explained(output):
        output.mkdir(parents=True, exist_ok=True)
    return output / default.name


def _is_page(output: Path) -> bool:
    return output.suffix in _PAGES and not output.is_dir()


def print_json(value: object) -> None:
    """Print a JSON document; with colours on a terminal."""
    text = json.dumps(value, default=str, indent=1, ensure_ascii=False)
    if out.is_terminal:
        out.print_json(text, indent=1)
    else:
        out.file.write(f"{escaped(text)}\n")


def table(*columns: str, title: str | None = None) -> Table:
    """Return an empty table with these columns, in the style of all tables that mplab prints."""
    rows = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
    for column in columns:
        rows.add_column(column, overflow="fold")
    return rows
