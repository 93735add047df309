"""Where words go: results to standard output, progress and errors to standard error."""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.errors import MplabError
from orchestrator.words import counted, duration

__all__ = ["check_folder", "counted", "duration", "err", "out", "print_json", "table", "writing"]

_PIPE_WIDTH = 120


def _console(*, stderr: bool) -> Console:
    """A console as wide as the terminal; where there is none, wide enough for our tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=width)


out = _console(stderr=False)
err = _console(stderr=True)


@contextlib.contextmanager
def writing(file: Path) -> Iterator[None]:
    """Turn an OSError of the block into an MplabError that names the output file."""
    try:
        yield
    except OSError as error:
        raise MplabError(f"{file}: cannot be written: {error.strerror or error}") from error


def check_folder(file: Path) -> None:
    """Raise MplabError when the folder of an output file is not there: before the work, not after it."""
    if not file.parent.is_dir():
        raise MplabError(f"{file}: cannot be written: there is no folder {file.parent}")


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print one JSON document."""
    out.print_json(json.dumps(value, default=str), indent=1)


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the style of all our tables."""
    made = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made
