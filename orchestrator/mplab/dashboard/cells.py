"""List the finished cells of a run, for its page."""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mplab.analysis.report.places import FOLDER, comparison_name, page_name
from mplab.base.errors import InputError
from mplab.dashboard.files import open_below
from mplab.format.runevents import CellFinished, CellStarted, RunEvent

_MOST_BYTES = 64 << 20
"""Part of the event log that is read, from its start."""


@dataclass(frozen=True)
class FinishedCell:
    """A cell with its final outcome, and the URL of its page in the report; "": it has no page."""

    id: str
    outcome: str
    duration_s: float
    t: float
    reasons: tuple[str, ...]
    page: str


def finished_cells(folder: Path, name: str) -> list[FinishedCell]:
    """Return the finished cells of the run ``folder/name``, the newest first."""
    cells: dict[str, CellFinished] = {}
    for event in _events(folder / name):
        if isinstance(event, CellStarted):
            cells.pop(event.cell, None)
        elif isinstance(event, CellFinished):
            cells[event.cell] = event
    pages = frozenset(_names(folder / name / "report" / FOLDER, (".html",)))
    return [
        FinishedCell(
            event.cell,
            event.outcome,
            event.duration_s,
            event.t,
            event.reasons,
            f"/runs/{quote(name)}/report/{FOLDER}/{page}" if (page := page_name(event.cell)) in pages else "",
        )
        for event in reversed(cells.values())
    ]


def has_comparison(folder: Path, name: str) -> bool:
    """Return whether `mplab compare` has written its page for the run ``folder/name``."""
    with contextlib.suppress(FileNotFoundError), open_below(folder, [comparison_name(name)]):
        return True
    return False


def log_names(folder: Path, name: str) -> list[str]:
    """Return the names of the logs of the run ``folder/name``."""
    return list(_names(folder / name / "logs", (".log", ".jsonl")))


def _events(path: Path) -> Iterator[RunEvent]:
    with contextlib.suppress(FileNotFoundError), open_below(path, ["events.jsonl"]) as file:
        for line in file.read(_MOST_BYTES).split(b"\n"):
            if b'"cell_' not in line:
                continue
            with contextlib.suppress(ValueError, RecursionError, InputError):
                yield RunEvent.parse(json.loads(line))


def _names(folder: Path, suffixes: tuple[str, ...]) -> Iterator[str]:
    if folder.is_symlink() or folder.parent.is_symlink():
        return
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(suffixes) and entry.is_file(follow_symlinks=False):
                    yield entry.name
    except OSError:
        return
