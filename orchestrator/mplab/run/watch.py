"""Define the functions that a run calls to report progress."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mplab.format.runevents import RunEvent

if TYPE_CHECKING:
    from mplab.analysis.pipeline import Progress


def _ignore(*_: object) -> None:
    pass


@dataclass(frozen=True)
class Watch:
    """Functions that a run calls as it progresses, in the thread that started it.

    They do not delay the cells, but the handling of Ctrl-C: they must return soon. An exception in one ends the run.

    Attributes:
        begun: called with the run directory and the number of its complete cells, when the lab is locked.
        event: called with each event of ``events.jsonl``; a resumed run starts with the events of earlier processes.
        analysis: called after each step of the analysis.
        doing: called with a line of text before a step that may take long.
        warning: called with a line of text about a doubt that does not stop the run.
    """

    begun: Callable[[Path, int], None] = _ignore
    event: Callable[[RunEvent], None] = _ignore
    analysis: Callable[["Progress"], None] = _ignore
    doing: Callable[[str], None] = _ignore
    warning: Callable[[str], None] = _ignore


SILENT = Watch()
"""Calls nothing."""
