"""Prepare the waterfalls of a cell's page loads: a bar for each request, divided into its phases."""

from collections.abc import Iterator
from dataclasses import dataclass

from mplab.analysis.record.pageload import PHASES, WHOLE, WebRequest, page_loads
from mplab.analysis.record.run import Cell
from mplab.analysis.text import data, printable, quantity

MOST_REQUESTS = 300
"""Maximum number of requests of all waterfalls on a page."""

MOST_CHARACTERS = 300
"""Maximum length of a text from a record that a page shows."""

PHASE_TITLES = {name: name for name in PHASES} | {
    "blocked": "queued",
    "dns": "DNS",
    "ssl": "TLS",
    "send": "request",
    "receive": "response",
    WHOLE: "whole request",
}


@dataclass(frozen=True)
class RequestBar:
    """A request of a page load; ``parts`` has (phase, title, left, width) of its bar, in percent of the load."""

    text: str
    facts: str
    parts: tuple[tuple[str, str, float, float], ...]


@dataclass(frozen=True)
class WaterfallChart:
    """The requests of a page load, and (name and time, left in percent) of the page's events."""

    file: str
    duration: str
    requests: tuple[RequestBar, ...]
    total: int
    marks: tuple[tuple[str, float], ...]
    problem: str


def waterfalls(cell: Cell) -> Iterator[WaterfallChart]:
    """Yield the waterfall of each page load of a cell."""
    left = MOST_REQUESTS
    for load in page_loads(cell):
        total_ms = load.end_ms or 1.0
        shown = load.requests[:left]
        left -= len(shown)
        yield WaterfallChart(
            file=load.file,
            duration=_milliseconds(load.end_ms),
            requests=tuple(_request(request, total_ms) for request in shown),
            total=len(load.requests),
            marks=tuple((f"{name} {_milliseconds(at_ms)}", share(at_ms, total_ms)) for name, at_ms in load.marks),
            problem=load.problem,
        )


def _request(request: WebRequest, total_ms: float) -> RequestBar:
    parts, at_ms = [], request.start_ms
    for name, took_ms in request.phases:
        parts.append(
            (name, f"{PHASE_TITLES[name]} {_milliseconds(took_ms)}", share(at_ms, total_ms), share(took_ms, total_ms))
        )
        at_ms += took_ms
    size = data(request.size_bytes) if request.size_bytes is not None else ""
    connection = f"connection {request.connection}" if request.connection else ""
    took = _milliseconds(request.end_ms - request.start_ms) if request.phases else "not completed"
    facts = (str(request.status or ""), size, request.protocol, connection, took)
    return RequestBar(
        short(f"{request.method} {request.url}"), short(" · ".join(fact for fact in facts if fact)), tuple(parts)
    )


def short(text: str) -> str:
    """Return a text from a record, cut to `MOST_CHARACTERS`, without unprintable characters."""
    text = printable(text)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}…"


def _milliseconds(value: float) -> str:
    return quantity(value / 1000, "s") if value >= 1000 else f"{value:.0f}\N{NO-BREAK SPACE}ms"


def share(part: float, whole: float) -> float:
    """Return ``part`` in percent of ``whole``, with two decimals: a position on a bar."""
    return round(min(max(100 * part / whole, 0.0), 100.0), 2)
