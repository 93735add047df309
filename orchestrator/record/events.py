"""``events.jsonl``: what happened in a run, appended as it happens."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from orchestrator.errors import InputError
from orchestrator.record.files import explained, write_all

Event = dict[str, Any]
"""``{"t": <unix s>, "event": NAME, …}``; the names are in docs/design.md."""


class EventLog:
    """Appends events, each with one write: a reader, or a crash, sees whole lines but for the last.

    Safe to use from several threads.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        """Opens or makes the file; a last line that a killed process has cut is ended or removed.

        Raises:
            MplabError: it cannot be written.
        """
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        with explained(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            _mend(self._descriptor, path)

    def append(self, event: str, **fields: Any) -> Event:  # noqa: ANN401 - any JSON value
        """Write one event with the time; what was written.

        Raises:
            MplabError: "disk full: …"; nothing of the event is then in the file.
        """
        record: Event = {"t": round(self._clock(), 6), "event": event, **fields}
        line = (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode(errors="replace")
        with self._lock, explained(self.path):
            size = os.fstat(self._descriptor).st_size
            try:
                write_all(self._descriptor, line)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise
        return record

    def close(self) -> None:
        """Put the file on disk and close it. Raises MplabError."""
        with self._lock, explained(self.path):
            try:
                os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)

    def __enter__(self) -> Self:
        """The log itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def read_events(path: Path) -> Iterator[Event]:
    """The events in a file, in order; a cut last line is left out.

    Raises:
        InputError: the file cannot be read, or another line than the last is not an event.
    """
    try:
        with path.open("rb") as file:
            yield from _parse(file, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _parse(lines: Iterator[bytes], path: Path) -> Iterator[Event]:
    broken = 0
    for number, line in enumerate(lines, start=1):
        if broken:
            raise InputError(f"{path}:{broken}: not an event: the file is damaged")
        record = _record(line)
        if record is None:
            broken = number
        else:
            yield record


def _record(line: bytes) -> Event | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = (
        isinstance(record, dict) and isinstance(record.get("event"), str) and isinstance(record.get("t"), int | float)
    )
    return record if whole else None


def _mend(descriptor: int, path: Path) -> None:
    """Make the file end with a line end, so that no later event is glued to a cut one."""
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return
    start = content.rfind(b"\n") + 1
    if _record(content[start:]) is not None:
        write_all(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, start)
