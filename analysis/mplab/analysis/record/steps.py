"""List the events of each cell as a timeline: attempts, steps with their durations, and the outcome."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest
from operator import attrgetter

from mplab.analysis.record.run import Run
from mplab.format.runevents import CellFinished, CellRetried, CellStarted, CellStep

_CellEvent = CellStarted | CellStep | CellRetried | CellFinished


@dataclass(frozen=True)
class StepTime:
    """An event of a cell, in words.

    ``at_s`` is the time since the cell's first event, s. ``took_s`` is the time until the next event, s; only a step
    (``is_step``) has it, and only if another event follows.
    """

    at_s: float
    text: str
    is_step: bool = False
    took_s: float | None = None


def timelines(run: Run) -> dict[str, tuple[StepTime, ...]]:
    """Return cell → its events in the order of the log, for each cell that has events."""
    events = [event for event in run.typed_events if isinstance(event, _CellEvent)]
    by_cell = groupby(sorted(events, key=attrgetter("cell")), key=attrgetter("cell"))
    return {cell: tuple(_moments(list(own))) for cell, own in by_cell}


def _moments(events: Sequence[_CellEvent]) -> Iterator[StepTime]:
    for event, later in zip_longest(events, events[1:]):
        is_step = isinstance(event, CellStep)
        took_s = later.t - event.t if is_step and later is not None else None
        yield StepTime(event.t - events[0].t, _text(event), is_step, took_s)


def _text(event: _CellEvent) -> str:
    match event:
        case CellStarted():
            return f"attempt {event.attempt}"
        case CellStep():
            return event.step
        case CellRetried():
            return f"attempt {event.attempt} failed: {event.reason}"
        case CellFinished():
            return event.outcome
