"""Tables of requested and measured values, in Markdown.

``python -m tests.router.tables TC LINKEM`` prints two tables side by side.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.router.conditions import Case

_ASKED = ["condition, path", "asked"]
MEASURED = ["down", "up", "RTT", "loss"]
"""Rates in kbit/s, RTT in ms, loss of the round trip in percent."""


def table(rows: Mapping[Case, Sequence[str]]) -> str:
    """Return a table with the request and the measured cells of each case."""
    return _lines(_ASKED + MEASURED, [[case.name, str(case.path), *cells] for case, cells in rows.items()])


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, ["---"] * len(head), *rows))


def _cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:]]


def side_by_side(tables: Mapping[str, str]) -> str:
    """Join tables of the same conditions into one, whose columns name the shapers."""
    head = [*_ASKED, *(f"{name}: {column}" for name in tables for column in MEASURED)]
    rows: dict[tuple[str, ...], list[str]] = {}
    for text in tables.values():
        for cells in _cells(text):
            rows.setdefault(tuple(cells[: len(_ASKED)]), []).extend(cells[len(_ASKED) :])
    return _lines(head, [[*requested, *measured] for requested, measured in rows.items()])


if __name__ == "__main__":
    print(side_by_side({Path(name).stem: Path(name).read_text(encoding="utf-8") for name in sys.argv[1:]}), end="")
