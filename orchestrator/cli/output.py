"""Where words go: results to standard output, progress and errors to standard error."""

import json
from typing import Any

from rich.console import Console
from rich.table import Table

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Print one JSON document."""
    out.print_json(json.dumps(value, default=str), indent=1)


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table in the style of all our tables."""
    made = Table(title=title, box=None, header_style="bold", title_justify="left", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def duration(seconds: float) -> str:
    """``2 min 05 s``, ``48 s``, ``1 h 10 min``."""
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {left:02} s" if minutes else f"{left} s"
