"""``events.jsonl``: events of a run or a campaign, appended as they happen. Each kind of event is one model.

The kinds are in `mplab.format.runevents`, `mplab.format.campaignevents` and `mplab.format.campaignfile`.
"""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Generic, Self, TypeVar

from pydantic import Field, ValidationError, field_validator

from mplab.base.errors import InputError
from mplab.base.files import Closing, explained, write_all
from mplab.format.record import Record, json_of
from mplab.format.times import END_OF_TIME_S


class Event(Record):
    """One event, a line of a log: ``{"t": <unix s>, "event": NAME, …}``. `CellStarted` has the NAME ``cell_started``.

    Each log has a base class, from which its kinds of events derive directly. An instance of the base class itself is
    an event of a kind that this version does not know.
    """

    t: Annotated[float, Field(ge=0, lt=END_OF_TIME_S)] = 0.0
    """Unix seconds; set by the log."""
    event: Annotated[str, Field(validate_default=True)] = ""
    """Name of the event's kind."""

    @field_validator("event")
    @classmethod
    def _named(cls, name: str) -> str:
        return name or name_of(cls)

    @classmethod
    def parse(cls, line: Mapping[str, object]) -> Self:
        """Return the event of a parsed line, as an instance of the class of its kind.

        Raises:
            InputError: a field is missing or wrong.
        """
        name = str(line.get("event"))
        try:
            kind: type[Self] = kinds_of(cls).get(name, cls)
            return kind.model_validate(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise InputError(f"event {name}: {where}: {first['msg']}") from None


AnyEvent = TypeVar("AnyEvent", bound=Event)


def name_of(kind: type[Event]) -> str:
    """Return the name, in logs, of a class of events: ``cell_started`` for `CellStarted`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).lower()


@cache
def kinds_of(base: type[AnyEvent]) -> Mapping[str, type[AnyEvent]]:
    """Return name → class for each kind of event of a log, in the order of their definition."""
    return {name_of(kind): kind for kind in base.__subclasses__()}


class EventLog(Closing):
    """A log file to which events are appended, each with one write. Several threads may append.

    Only the last line can be incomplete: after a crash, or while another process reads the file.
    """

    def __init__(
        self, path: Path, *, clock: Callable[[], float] = time.time, beside: bool = False, durable: bool = False
    ) -> None:
        """Open or create the file. A last line that a killed process left incomplete is completed or removed.

        Args:
            path: file of the log.
            clock: returns Unix seconds.
            beside: True: another process may write to the file too, so its last line is not repaired.
            durable: True: each event is on disk when `append` returns. False: all are on disk after `close`.

        Raises:
            MplabError: the file cannot be written.
        """
        self.path = path
        self._clock = clock
        self._durable = durable
        self._lock = threading.Lock()
        with explained(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if not beside:
                _mend(self._descriptor, path)

    def append(self, event: AnyEvent) -> AnyEvent:
        """Write one event with the current time and return it as written.

        Raises:
            MplabError: the file cannot be written ("disk full: …"). The file then holds no part of the event.
        """
        stamped = event.model_copy(update={"t": round(self._clock(), 6)})
        line = (json.dumps(json_of(stamped), ensure_ascii=False, allow_nan=False) + "\n").encode(errors="replace")
        with self._lock, explained(self.path):
            size = os.fstat(self._descriptor).st_size
            try:
                write_all(self._descriptor, line)
            except OSError:
                os.ftruncate(self._descriptor, size)
                raise
            if self._durable:
                os.fsync(self._descriptor)
        return stamped

    def close(self) -> None:
        """Flush the file to disk and close it. Raises MplabError."""
        with self._lock, explained(self.path):
            try:
                os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)


def read_events(path: Path, base: type[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield the events of a file, in order, without an incomplete last line.

    Args:
        path: file of the log.
        base: base class of the log's kinds of events.

    Raises:
        InputError: the file cannot be read, or a line other than the last is not an event.
    """
    with _readable(path), path.open("rb") as file:
        yield from map(base.parse, _parse(file, path))


class EventTail(Closing, Generic[AnyEvent]):
    """Reader of a log that another process appends to. It returns complete lines only.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, path: Path, base: type[AnyEvent]) -> None:
        """Open an existing log.

        Args:
            path: file of the log.
            base: base class of the log's kinds of events.

        Raises:
            InputError: the file cannot be read.
        """
        self._path = path
        self._base = base
        self._rest = b""
        with _readable(path):
            self._file = path.open("rb")

    def poll(self) -> list[AnyEvent]:
        """Return the events that were appended since the last call. Raises InputError: a line is not an event."""
        with _readable(self._path):
            *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        records = [_record(line) for line in lines if line]
        if None in records:
            raise InputError(f"{self._path}: not an event: the file is damaged")
        return [self._base.parse(line) for line in records if line is not None]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


_Line = dict[str, Any]


@contextlib.contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _parse(lines: Iterator[bytes], path: Path) -> Iterator[_Line]:
    broken = 0
    for number, line in enumerate(lines, start=1):
        if broken:
            raise InputError(f"{path}:{broken}: not an event: the file is damaged")
        record = _record(line)
        if record is None:
            broken = number
        else:
            yield record


def _record(line: bytes) -> _Line | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    valid = (
        isinstance(record, dict) and isinstance(record.get("event"), str) and isinstance(record.get("t"), int | float)
    )
    return record if valid else None


def _mend(descriptor: int, path: Path) -> None:
    """Repair a last line without newline, so that no event is appended to it: complete it, or remove it if damaged."""
    content = path.read_bytes()
    if not content or content.endswith(b"\n"):
        return
    start = content.rfind(b"\n") + 1
    if _record(content[start:]) is not None:
        write_all(descriptor, b"\n")
    else:
        os.ftruncate(descriptor, start)
