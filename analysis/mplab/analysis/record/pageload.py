"""Read the web objects of the page loads in a cell: from HAR files, and from Firefox's logs of network events.

The files belong to the run, which another user may have made: every field is checked, and sizes are limited.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, Field, FiniteFloat, ValidationError

from mplab.analysis.files import Json, parse_json
from mplab.analysis.record.run import Cell
from mplab.format.times import sensible

HAR, NETWORK = "har", "network"
"""Folders of a cell with a file per page load: HAR 1.2; events of WebDriver's or DevTools' domain Network."""

MOST_BYTES = 32 << 20
"""Maximum size of a file that is read, bytes."""

MOST_LOADS = 60
"""Maximum number of page loads of a cell that are read."""

MOST_BYTES_IN_ALL = 64 << 20
"""Maximum size of all page loads of a cell that are read, bytes."""

MOST_ENTRIES, MOST_EVENTS = 5000, 50_000
"""Maximum number of requests in a HAR file, and of events in a log of events, that is read."""

PHASES = ("blocked", "dns", "connect", "ssl", "send", "wait", "receive")
"""Phases of a request in their order, with HAR's names. Here, ``connect`` does not include ``ssl``."""

WHOLE = "load"
"""Name of the only phase of a request whose parts are unknown."""

_LONGEST_MS = 1e9


@dataclass(frozen=True)
class WebRequest:
    """A request of a page load. Times are in ms since the start of the load.

    ``phases``: (name, duration) of each phase that took time, in their order, starting at ``start_ms``.
    ``size_bytes``: transferred bytes, headers included; None: unknown.
    """

    url: str
    method: str
    status: int
    protocol: str
    connection: str
    size_bytes: int | None
    start_ms: float
    phases: tuple[tuple[str, float], ...]

    @property
    def end_ms(self) -> float:
        """Return the end of the last phase."""
        return self.start_ms + sum(duration for _, duration in self.phases)


@dataclass(frozen=True)
class PageLoad:
    """A page load: the file that describes it, its requests by start, and (name, time in ms) of the page's events.

    ``problem``: why the file cannot be read; "" if it was read.
    """

    file: str
    requests: tuple[WebRequest, ...] = ()
    marks: tuple[tuple[str, float], ...] = ()
    problem: str = ""

    @property
    def end_ms(self) -> float:
        """Return the time of the last end of a request, or of the last event of the page, ms."""
        ends = [request.end_ms for request in self.requests] + [time_ms for _, time_ms in self.marks]
        return max(ends, default=0.0)


def page_loads(cell: Cell) -> list[PageLoad]:
    """Return the page loads of a cell, sorted by file name, at most `MOST_LOADS`; no file is read through a link."""
    if cell.directory is None:
        return []
    readers = ((HAR, "*.har", _of_har), (NETWORK, "*.json", _of_events))
    files = (
        (path, f"{folder}/{path.name}", reader)
        for folder, pattern, reader in readers
        for path in sorted((cell.directory / folder).glob(pattern))
        if path.is_file() and not path.is_symlink()
    )
    loads, left = [], MOST_BYTES_IN_ALL
    for path, name, reader in islice(files, MOST_LOADS):
        size = path.stat().st_size
        if size > min(MOST_BYTES, left):
            loads.append(PageLoad(name, problem=f"not read: more than {min(MOST_BYTES, left) >> 20} MiB"))
            continue
        left -= size
        loads.append(_read(path, name, reader))
    return loads


def _read(path: Path, name: str, reader: "_Reader") -> PageLoad:
    try:
        requests, marks = reader(parse_json(path.read_bytes()))
    except (ValidationError, ValueError, OSError, OverflowError):
        return PageLoad(name, problem="not a log of a page load")
    return PageLoad(name, tuple(sorted(requests, key=lambda request: request.start_ms)), tuple(marks))


_Moment = Annotated[AwareDatetime, AfterValidator(sensible)]
_Milliseconds = Annotated[FiniteFloat | None, Field(lt=_LONGEST_MS)]
_Size = Annotated[int, Field(ge=-1, lt=2**53)]
_Word = Annotated[str, BeforeValidator(str), Field(max_length=100)]
_Url = Annotated[str, Field(max_length=100_000)]


class _HarRequest(BaseModel):
    method: _Word = ""
    url: _Url


class _HarResponse(BaseModel):
    status: Annotated[int, Field(ge=0, lt=1000)] = 0
    http_version: Annotated[_Word, Field(alias="httpVersion")] = ""
    body_size: Annotated[_Size, Field(alias="bodySize")] = -1
    transferred: Annotated[_Size | None, Field(alias="_transferSize")] = None


class _HarEntry(BaseModel):
    started: Annotated[_Moment, Field(alias="startedDateTime")]
    request: _HarRequest
    response: _HarResponse = _HarResponse()
    connection: _Word = ""
    timings: dict[str, _Milliseconds] = Field(default_factory=dict)


class _HarPage(BaseModel):
    started: Annotated[_Moment, Field(alias="startedDateTime")]
    timings: Annotated[dict[str, _Milliseconds], Field(alias="pageTimings")] = Field(default_factory=dict)


class _HarLog(BaseModel):
    pages: Annotated[list[_HarPage], Field(max_length=MOST_ENTRIES)] = []
    entries: Annotated[list[_HarEntry], Field(max_length=MOST_ENTRIES)] = []


class _Har(BaseModel):
    log: _HarLog


_Parts = tuple[list[WebRequest], list[tuple[str, float]]]
_Reader = Callable[[Json], _Parts]
_MARKS = {"onContentLoad": "DOMContentLoaded", "onLoad": "Load"}


def _of_har(content: Json) -> _Parts:
    log = _Har.model_validate(content).log
    zero = min([page.started for page in log.pages] + [entry.started for entry in log.entries], default=None)
    if zero is None:
        return [], []
    requests = []
    for entry in log.entries:
        size = entry.response.transferred if entry.response.transferred is not None else entry.response.body_size
        requests.append(
            WebRequest(
                url=entry.request.url,
                method=entry.request.method,
                status=entry.response.status,
                protocol=entry.response.http_version,
                connection=entry.connection,
                size_bytes=size if size >= 0 else None,
                start_ms=_ms_between(zero, entry.started),
                phases=tuple(_phases(entry.timings)),
            )
        )
    marks = [
        (_MARKS[name], _ms_between(zero, page.started) + time_ms)
        for page in log.pages[:1]
        for name, time_ms in page.timings.items()
        if name in _MARKS and time_ms is not None and time_ms >= 0
    ]
    return requests, marks


def _phases(timings: Mapping[str, float | None]) -> Iterator[tuple[str, float]]:
    known = {name: max(timings.get(name) or 0.0, 0.0) for name in PHASES}
    known["connect"] = max(known["connect"] - known["ssl"], 0.0)
    yield from ((name, duration_ms) for name, duration_ms in known.items() if duration_ms > 0)


def _ms_between(zero: datetime, moment: datetime) -> float:
    return min((moment - zero).total_seconds() * 1e3, _LONGEST_MS)


class _NetworkRequest(BaseModel):
    url: _Url = ""
    method: _Word = ""


class _NetworkResponse(BaseModel):
    status: Annotated[int, Field(ge=0, lt=1000)] = 0
    protocol: _Word = ""


class _NetworkParameters(BaseModel):
    id: Annotated[_Word, Field(alias="requestId")] = ""
    request: _NetworkRequest = _NetworkRequest()
    response: _NetworkResponse = _NetworkResponse()
    timestamp: Annotated[FiniteFloat | None, Field(ge=0, lt=1e11)] = None
    """Seconds, of any clock."""
    length: Annotated[_Size | None, Field(alias="encodedDataLength")] = None


class _NetworkEvent(BaseModel):
    method: _Word
    params: _NetworkParameters = _NetworkParameters()


class _NetworkLog(BaseModel):
    events: Annotated[list[_NetworkEvent], Field(max_length=MOST_EVENTS)]


def _of_events(content: Json) -> _Parts:
    asked: dict[str, _NetworkParameters] = {}
    answered: dict[str, _NetworkResponse] = {}
    ended: dict[str, _NetworkParameters] = {}
    for event in _NetworkLog(events=content).events:  # type: ignore[arg-type]  # pydantic checks it
        match event.method:
            case "Network.requestWillBeSent" if event.params.timestamp is not None:
                asked.setdefault(event.params.id, event.params)
            case "Network.responseReceived":
                answered[event.params.id] = event.params.response
            case "Network.loadingFinished":
                ended[event.params.id] = event.params
    zero = min((params.timestamp for params in asked.values() if params.timestamp is not None), default=0.0)
    requests = []
    for identity, params in asked.items():
        start = params.timestamp or 0.0
        end = ended.get(identity)
        response = answered.get(identity, _NetworkResponse())
        took_ms = ((end.timestamp or start) - start) * 1e3 if end is not None else 0.0
        requests.append(
            WebRequest(
                url=params.request.url,
                method=params.request.method,
                status=response.status,
                protocol=response.protocol,
                connection="",
                size_bytes=end.length if end is not None and end.length is not None and end.length >= 0 else None,
                start_ms=min((start - zero) * 1e3, _LONGEST_MS),
                phases=((WHOLE, min(took_ms, _LONGEST_MS)),) if took_ms > 0 else (),
            )
        )
    return requests, []
