"""Where words go: results to standard output, progress and errors to standard error."""

import json
import os
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.words import counted, duration

__all__ = ["counted", "duration", "err", "out", "print_json", "table"]

_PIPE_WIDTH = 120


def _console(*, stderr: bool) -> Console:
    """A console as wide as the terminal; where there is none, wide enough for our tables."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH
    return Console(stderr=stderr, highlight=False, width=width)


out = _console(stderr=False)
err = _console(stderr=True)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print one JSON document."""
    out.print_json(json.dumps(value, default=str), indent=1)


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the style of all our tables."""
    made = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made
