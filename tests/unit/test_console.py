"""Messages of a browser's console: both kinds of browsers, and the limits of the stored log."""

import json
from pathlib import Path
from typing import Any

from mplab.base.errors import StepError
from mplab.drivers.ui.console import (
    MAX_BYTES,
    MAX_ENTRIES,
    MAX_TEXT,
    ConsoleEntry,
    ConsoleLog,
    from_bidi,
    from_chromium,
    kept_console,
)


def entries(count: int, text: str = "x") -> list[ConsoleEntry]:
    return [ConsoleEntry(float(number), "info", "console-api", text) for number in range(count)]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_both_browsers_tell_the_same() -> None:
    chromium = {"level": "SEVERE", "source": "network", "timestamp": 1500, "message": "https://x/ - 404"}
    assert from_chromium([chromium]) == [ConsoleEntry(1.5, "error", "network", "https://x/ - 404")]
    frame = {"url": "https://x/a.js", "lineNumber": 3, "columnNumber": 1}
    logged = {
        "type": "console",
        "level": "warn",
        "timestamp": 1500,
        "text": "hm",
        "stackTrace": {"callFrames": [frame]},
    }
    thrown = {"type": "javascript", "level": "error", "timestamp": 1600, "text": None}
    events = [
        {"method": "log.entryAdded", "params": logged},
        {"method": "browsingContext.load", "params": {}},
        {"method": "log.entryAdded", "params": thrown},
    ]
    assert from_bidi(events) == [
        ConsoleEntry(1.5, "warning", "console-api", "https://x/a.js 3:1 hm"),
        ConsoleEntry(1.6, "error", "javascript", ""),
    ]


def test_the_file_is_there_also_when_nothing_was_said(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "console-phone.jsonl"
    with kept_console(ConsoleLog(path), list):
        assert path.exists()
    assert path.read_text() == ""


def test_browsers_of_a_cell_are_told_apart_and_one_that_is_gone_disturbs_nobody(tmp_path: Path) -> None:
    log = ConsoleLog(tmp_path / "console.jsonl")

    def gone() -> list[ConsoleEntry]:
        raise StepError("browser: the browser has ended")

    for tell in (lambda: entries(1), gone, lambda: entries(1)):
        with kept_console(log, tell):
            pass
    assert [record["browser"] for record in read(tmp_path / "console.jsonl")] == [1, 3]


def test_of_many_messages_the_first_and_the_last_are_kept(tmp_path: Path) -> None:
    log = ConsoleLog(tmp_path / "console.jsonl")
    log.begin()
    log.keep(entries(MAX_ENTRIES + 100))
    records = read(tmp_path / "console.jsonl")
    assert (records[0]["t"], records[-1]["t"]) == (0.0, MAX_ENTRIES + 99.0)
    assert [record for record in records if "left_out" in record] == [{"browser": 1, "left_out": 100}]
    assert len(records) == MAX_ENTRIES + 1


def test_a_page_that_never_stops_talking_fills_no_disk(tmp_path: Path) -> None:
    path = tmp_path / "console.jsonl"
    log = ConsoleLog(path)
    for _ in range(20):
        log.begin()
        log.keep(entries(MAX_ENTRIES, "y" * 10 * MAX_TEXT))
    assert path.stat().st_size < 3 * MAX_BYTES
    assert read(path)[-1] == {"browser": 20, "left_out": MAX_ENTRIES}
    assert max(len(record.get("text", "")) for record in read(path)) == MAX_TEXT + 1
