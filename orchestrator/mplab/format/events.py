"""``events.jsonl``: what happened in a run, appended as it happens."""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mplab.base.errors import InputError
from mplab.base.files import explained, write_all

Event = dict[str, Any]
"""``{"t": <unix s>, "event": NAME, …}``; the names are in docs/design.md."""


class EventLog:
    """Appends events, each with one write: a reader, or a crash, sees whole lines but for the last.

    Safe to use from several threads.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, beside: bool = False, durable: bool = False
    ) -> None:
        """Opens or makes the file; a last line that a killed process has cut is ended or removed.

        With `beside`, another process may be writing to it: nothing is removed. With `durable`, each event is on disk
        when `append` returns; else the file is when the log is closed.

        Raises:
            MplabError: it cannot be written.
        """
        self.path = path
        self._clock = clock
        self._durable = durable
        self._lock = threading.Lock()
        with explained(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not beside:
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
            if self._durable:
                os.fsync(self._descriptor)
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
    with _readable(path), path.open("rb") as file:
        yield from _parse(file, path)


class EventTail:
    """Reads a file of events that somebody else appends to; whole lines alone.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        """`path` must be there."""
        self._path = path
        self._rest = b""
        with _readable(path):
            self._file = path.open("rb")

    def poll(self) -> list[Event]:
        """The events that have come since. Raises InputError when a line is no event."""
        with _readable(self._path):
            *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        found = [_record(line) for line in lines if line]
        if None in found:
            raise InputError(f"{self._path}: not an event: the file is damaged")
        return [event for event in found if event is not None]

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def __enter__(self) -> Self:
        """The reader itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
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
    except (ValueError, RecursionError):
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
