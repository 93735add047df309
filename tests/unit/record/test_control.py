"""Orders to a running run: other processes append them to its events."""

from datetime import datetime
from pathlib import Path

import pytest

from mplab.format.events import EventLog, EventTail, read_events
from mplab.format.runevents import ContinueAsked, DeadlineSet, PauseAsked, RunEvent, RunResumed, RunStarted
from mplab.run.control import RunControl, request
from mplab.run.progress import RunProgress


def names(path: Path) -> list[str]:
    return [event.event for event in read_events(path, RunEvent)]


def test_a_run_waits_between_two_orders(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    states = []

    def sleep(_seconds: float) -> None:
        states.append(RunProgress.from_events(read_events(path, RunEvent)).state)
        if len(states) == 2:
            request(path, ContinueAsked())

    with EventLog(path) as events:
        events.append(RunStarted())
        with RunControl(events, sleep=sleep) as control:
            control.wait_while_paused()
            assert names(path) == ["run_started"]
            request(path, PauseAsked())
            control.wait_while_paused()
            control.wait_while_paused()
    assert states == ["paused", "paused"]
    assert names(path) == ["run_started", "pause_asked", "run_paused", "continue_asked", "run_continued"]
    assert RunProgress.from_events(read_events(path, RunEvent)).state == "running"


def test_what_was_ordered_before_it_was_resumed_does_not_count(tmp_path: Path) -> None:
    with EventLog(tmp_path / "events.jsonl") as events:
        events.append(DeadlineSet(ends_by=1000.0))
        with RunControl(events, sleep=lambda _: pytest.fail("it does not wait")) as control:
            assert control.ends_by == datetime.fromtimestamp(1000).astimezone()
            events.append(PauseAsked())
            events.append(RunResumed())
            control.wait_while_paused()
            assert control.ends_by is None


def test_a_log_beside_another_one_leaves_its_last_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with EventLog(path) as events:
        events.append(RunStarted())
        with path.open("ab") as file, EventTail(path, RunEvent) as tail:
            assert [event.event for event in tail.poll()] == ["run_started"]
            file.write(b'{"t": 1, "event": ')
            file.flush()
            with EventLog(path, beside=True):
                assert tail.poll() == []
            file.write(b'"run_resumed"}\n')
            file.flush()
            assert [event.event for event in tail.poll()] == ["run_resumed"]
