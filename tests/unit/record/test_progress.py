"""The progress of a run follows from its events only."""

import pytest

from mplab.format.plan import CellSpec
from mplab.format.record import json_of
from mplab.format.runevents import CellFinished, CellStarted, RunEvent, RunFinished, RunResumed
from mplab.run.progress import ProgressTracker, RunProgress


def test_before_anything_happened() -> None:
    progress = RunProgress.from_events([])
    assert (progress.state, progress.total, progress.done, progress.eta_s) == ("planned", 0, 0, 0.0)


def test_planned(events: list[RunEvent]) -> None:
    progress = RunProgress.from_events(events[:1])
    assert (progress.state, progress.total, progress.remaining) == ("planned", 4, 4)
    assert progress.eta_s == pytest.approx(80.0)
    assert progress.skipped == (("quic", "not built"),)


def test_in_the_middle_of_a_cell(events: list[RunEvent], cells: list[CellSpec]) -> None:
    progress = RunProgress.from_events(events[:4])
    assert (progress.state, progress.current_cell, progress.current_step) == ("running", cells[0].id, "probe")
    assert (progress.attempt, progress.done, progress.remaining) == (1, 0, 4)
    assert (progress.started, progress.updated) == (1_700_000_001.0, 1_700_000_003.0)


def test_in_a_second_attempt(events: list[RunEvent], cells: list[CellSpec]) -> None:
    progress = RunProgress.from_events(events[:11])
    assert (progress.current_cell, progress.attempt, progress.retried) == (cells[2].id, 2, 1)
    assert (progress.ok, progress.invalid, progress.failed) == (1, 1, 0)


def test_interrupted(events: list[RunEvent], cells: list[CellSpec]) -> None:
    progress = RunProgress.from_events(events)
    assert (progress.state, progress.current_cell, progress.current_step) == ("interrupted", None, None)
    assert (progress.ok, progress.invalid, progress.failed, progress.remaining) == (1, 1, 1, 1)
    assert dict(progress.outcomes) == {cells[0].id: "ok", cells[1].id: "invalid", cells[2].id: "failed"}
    assert progress.eta_s == 10.0  # the remaining cell is like the first one: web over mptcp


def test_resumed_and_finished(events: list[RunEvent], cells: list[CellSpec]) -> None:
    more: list[RunEvent] = [
        RunResumed(t=1_700_001_000.0),
        CellStarted(t=1_700_001_001.0, cell=cells[2].id, attempt=3),
    ]
    again = RunProgress.from_events([*events, *more])
    assert (again.state, again.done, again.failed, again.current_cell) == ("running", 2, 0, cells[2].id)
    for cell in (cells[2], cells[3]):
        more.append(CellFinished(t=1.0, cell=cell.id, outcome="ok", duration_s=9.0))
    more.append(RunFinished(t=1_700_001_009.0))
    progress = RunProgress.from_events([*events, *more])
    assert (progress.state, progress.done, progress.ok, progress.remaining) == ("finished", 4, 3, 0)
    assert progress.eta_s == 0.0
    assert progress.started == 1_700_000_001.0


def test_unknown_events_and_keys_change_nothing(events: list[RunEvent]) -> None:
    plan = json_of(events[0])
    cells = plan["cells"]
    assert isinstance(cells, list)
    red: list[dict[str, object]] = [{**cell, "colour": "red"} for cell in cells if isinstance(cell, dict)]
    unknown = {"t": events[2].t, "event": "battery_low", "cell": "x"}
    changed = [RunEvent.parse({**plan, "cells": red}), *events[1:3], RunEvent.parse(unknown)]
    assert RunProgress.from_events(changed) == RunProgress.from_events(events[:3])


def test_a_display_may_follow_event_by_event(events: list[RunEvent]) -> None:
    tracker = ProgressTracker()
    for number, event in enumerate(events, start=1):
        tracker.feed(event)
        assert tracker.progress() == RunProgress.from_events(events[:number])
