"""Save the messages that pages write to a browser's console in a log file of the cell.

The file has one JSON object per line: ``t`` (Unix time, s), ``browser`` (number of the browser in the cell, from 1),
``level`` (``debug``, ``info``, ``warning``, ``error``), ``source`` (``console-api``, ``javascript``, ``network``, …)
and ``text``.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from mplab.base.browser import Event
from mplab.base.errors import StepError

MAX_ENTRIES = 400
"""Maximum number of entries that one call of `ConsoleLog.keep` writes: half from the start, half from the end.

Entries in between are replaced by their number.
"""
MAX_TEXT = 1000
"""Maximum length of the text of an entry, characters."""
MAX_BYTES = 500_000
"""Size of the log file above which `ConsoleLog.keep` writes only the number of new entries, bytes."""


@dataclass(frozen=True)
class ConsoleEntry:
    """One message in a browser's console.

    Attributes:
        t: Unix time, s.
        level: ``debug``, ``info``, ``warning`` or ``error``.
        source: origin of the message.
        text: the message, with its place in the code if the browser reports it.
    """

    t: float
    level: str
    source: str
    text: str


class ConsoleLog:
    """Log file of one cell with the console messages of all browsers on one node.

    Args:
        path: the file to which messages are appended; it is made when the first browser opens.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._browser = 0

    def begin(self) -> None:
        """Count a newly opened browser. `keep` gives this browser's number to all entries until the next `begin`."""
        self._browser += 1
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()

    def keep(self, entries: Iterable[ConsoleEntry]) -> None:
        """Append entries of the browser that was opened last; shorten long lists (`MAX_ENTRIES`) and texts."""
        kept_entries = list(entries)
        head, tail = kept_entries, kept_entries[:0]
        if self._path.stat().st_size > MAX_BYTES:
            head = []
        elif len(kept_entries) > MAX_ENTRIES:
            head, tail = kept_entries[: MAX_ENTRIES // 2], kept_entries[-MAX_ENTRIES // 2 :]
        left_out = len(kept_entries) - len(head) - len(tail)
        between = [{"browser": self._browser, "left_out": left_out}] if left_out else []
        records = [*map(self._record, head), *between, *map(self._record, tail)]
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(record, separators=(",", ":")) + "\n" for record in records)

    def _record(self, entry: ConsoleEntry) -> dict[str, object]:
        text = entry.text if len(entry.text) <= MAX_TEXT else entry.text[:MAX_TEXT] + "…"
        return {**asdict(entry), "browser": self._browser, "text": text}


@contextmanager
def kept_console(log: ConsoleLog | None, read: Callable[[], Iterable[ConsoleEntry]]) -> Iterator[None]:
    """Append a browser's console entries to `log` when the context ends.

    Args:
        log: log of the browser's node; None: do nothing.
        read: function that returns the entries. If it raises StepError because the browser has ended, none is appended.
    """
    if log is None:
        yield
        return
    log.begin()
    try:
        yield
    finally:
        with suppress(StepError):
            log.keep(read())


_CHROMIUM_LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warning", "SEVERE": "error"}


def from_chromium(entries: Iterable[Event]) -> list[ConsoleEntry]:
    """Convert entries of ChromeDriver's log ``browser`` into console entries."""
    return [
        ConsoleEntry(
            t=entry["timestamp"] / 1000,
            level=_CHROMIUM_LEVELS.get(entry["level"], "info"),
            source=str(entry.get("source", "")),
            text=str(entry["message"]),
        )
        for entry in entries
    ]


_BIDI_LEVELS = {"debug": "debug", "info": "info", "warn": "warning", "error": "error"}
_BIDI_SOURCES = {"console": "console-api"}
BIDI_EVENT = "log.entryAdded"


def from_bidi(events: Iterable[Event]) -> list[ConsoleEntry]:
    """Convert ``log.entryAdded`` events of WebDriver BiDi into console entries; other events are skipped."""
    return [_of_bidi(event["params"]) for event in events if event["method"] == BIDI_EVENT]


def _of_bidi(entry: Event) -> ConsoleEntry:
    frames = (entry.get("stackTrace") or {}).get("callFrames") or []
    position = f"{frames[0]['url']} {frames[0]['lineNumber']}:{frames[0]['columnNumber']} " if frames else ""
    kind = str(entry["type"])
    return ConsoleEntry(
        t=entry["timestamp"] / 1000,
        level=_BIDI_LEVELS.get(entry["level"], "info"),
        source=_BIDI_SOURCES.get(kind, kind),
        text=f"{position}{entry.get('text') or ''}",
    )
