"""Each event is written byte for byte as in ``events/``, whose lines are older than the models of events."""

import json
from pathlib import Path

import pytest

from mplab.format.campaignevents import CampaignEvent
from mplab.format.campaignfile import RetentionEvent
from mplab.format.events import Event, EventLog, kinds_of, read_events
from mplab.format.runevents import RunEvent

LINES = Path(__file__).parent / "events"
LOGS: dict[str, type[Event]] = {"run": RunEvent, "campaign": CampaignEvent, "retention": RetentionEvent}


@pytest.mark.parametrize("log", LOGS)
def test_lines_are_as_before(log: str, tmp_path: Path) -> None:
    before = LINES / f"{log}.jsonl"
    for event in read_events(before, LOGS[log]):
        undated = event.model_copy(update={"t": 0.0})
        with EventLog(tmp_path / "events.jsonl", clock=lambda at=event.t: at) as events:  # type: ignore[misc]
            assert events.append(undated) == event
    assert (tmp_path / "events.jsonl").read_bytes() == before.read_bytes()


@pytest.mark.parametrize("log", LOGS)
def test_there_is_a_line_of_each_kind(log: str) -> None:
    lines = (LINES / f"{log}.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["event"] for line in lines} == set(kinds_of(LOGS[log]))


@pytest.mark.parametrize("log", LOGS)
def test_no_two_logs_share_a_name(log: str) -> None:
    others = {name for other, base in LOGS.items() if other != log for name in kinds_of(base)}
    assert not others & set(kinds_of(LOGS[log]))
