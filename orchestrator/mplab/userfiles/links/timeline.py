"""A link condition over time: values of each direction, and outages of each path."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from mplab.format.direction import WAYS, Direction, Way
from mplab.format.link import LinkCondition, Moment, PathName
from mplab.format.path import PathCondition
from mplab.format.trace import PACKET_BYTES, Trace

STILL_S = 10.0
"""Duration of the plot of a condition without changes, seconds."""

_MOST_TRACE_S = 600.0
_TRACE_BINS = 200

QUANTITIES: Mapping[str, Callable[[Direction], float | None]] = {
    "rate": lambda way: way.trace.profile().mean_kbps if way.trace else way.rate_kbps,
    "delay": lambda way: way.delay_ms,
    "jitter": lambda way: way.jitter_ms,
    "loss": lambda way: way.loss_percent,
    "reorder": lambda way: way.reorder_percent,
    "duplicate": lambda way: way.duplicate_percent,
}
"""Quantity → function that returns its value in kbit/s (None: unlimited), ms or percent."""


@dataclass(frozen=True)
class Line:
    """A quantity of one direction, or of both directions if they are always equal, as a step function of time."""

    path: PathName
    ways: tuple[Way, ...]
    quantity: str
    steps: tuple[tuple[float, float | None], ...]
    """(time in s, value), the first at 0."""

    @property
    def changes(self) -> bool:
        """Return whether the quantity changes during the plotted time."""
        return len({value for _, value in self.steps}) > 1

    def at(self, time_s: float) -> float | None:
        """Return the quantity's value at `time_s`, seconds; None: unlimited."""
        return next(value for begin, value in reversed(self.steps) if begin <= time_s)


@dataclass(frozen=True)
class LinkTimeline:
    """A link condition over time, for plots.

    Attributes:
        ends_s: duration of the plot, seconds.
        outages: (from, to) in seconds for each path: its interface is down, its radio off, or its access point lost.
        marks: (time in seconds, path, text) of other changes: the default route, Multipath TCP.
    """

    ends_s: float
    lines: tuple[Line, ...]
    outages: Mapping[PathName, tuple[tuple[float, float], ...]] = field(default_factory=dict)
    marks: tuple[tuple[float, PathName, str], ...] = ()


def timeline_of(link: LinkCondition) -> LinkTimeline:
    """Return the timeline of a link condition. Raises ValueError: a trace file is wrong."""
    ends_s = _end(link)
    begins: dict[PathName, PathCondition] = {"wifi": link.wifi, "lte": link.lte}
    lines = [line for path, begin in begins.items() for line in _lines(path, begin, link.changes)]
    return LinkTimeline(
        ends_s,
        tuple(lines),
        {path: tuple(_outages(path, link.changes, ends_s)) for path in begins},
        tuple(_marks(link.changes)),
    )


def _end(link: LinkCondition) -> float:
    if link.changes:
        return link.changes[-1].at_s * 1.1 + 1.0
    traces = [trace for path in (link.wifi, link.lte) for direction in WAYS if (trace := path.way(direction).trace)]
    return min(max([trace.profile().lasts_ms / 1000 for trace in traces], default=STILL_S), _MOST_TRACE_S)


def _lines(path: PathName, begin: PathCondition, changes: tuple[Moment, ...]) -> Iterator[Line]:
    own = [(moment.at_s, moment.condition) for moment in changes if moment.path == path and moment.reshaped]
    for quantity, value_of in QUANTITIES.items():
        steps_of: dict[Way, tuple[tuple[float, float | None], ...]] = {}
        for direction in WAYS:
            trace = begin.way(direction).trace
            if quantity == "rate" and trace is not None and not own:
                steps_of[direction] = tuple(_trace_steps(trace))
            else:
                steps_of[direction] = tuple(
                    (at_s, value_of(condition.way(direction))) for at_s, condition in [(0.0, begin), *own]
                )
        if steps_of["down"] == steps_of["up"]:
            yield Line(path, WAYS, quantity, steps_of["down"])
        else:
            yield from (Line(path, (direction,), quantity, steps) for direction, steps in steps_of.items())


def _trace_steps(trace: Trace) -> Iterator[tuple[float, float | None]]:
    """Yield (start in seconds, mean rate in kbit/s) for each of the intervals into which a trace is divided."""
    shown_ms = min(trace.profile().lasts_ms, _MOST_TRACE_S * 1000)
    width_ms = max(shown_ms / _TRACE_BINS, 100.0)
    counts: dict[int, int] = {}
    for time_ms in trace.times_ms():
        counts[int(time_ms / width_ms)] = counts.get(int(time_ms / width_ms), 0) + 1
    for index in range(max(int(shown_ms / width_ms), 1)):
        yield index * width_ms / 1000, counts.get(index, 0) * PACKET_BYTES * 8 / width_ms


def _outages(path: PathName, changes: tuple[Moment, ...], ends_s: float) -> Iterator[tuple[float, float]]:
    up, lit, since = True, True, -1.0
    for moment in changes:
        if moment.path != path:
            continue
        if moment.interface:
            up = moment.interface == "up"
        if moment.radio:
            lit = moment.radio == "on"
        if moment.access_point:
            up = moment.access_point == "new"
            lit = lit or up
        out = not (up and lit)
        if out and since < 0:
            since = moment.at_s
        elif not out and since >= 0:
            yield since, moment.at_s
            since = -1.0
    if since >= 0:
        yield since, ends_s


def _marks(changes: tuple[Moment, ...]) -> Iterator[tuple[float, PathName, str]]:
    for moment in changes:
        if moment.default_route:
            yield moment.at_s, moment.path, "default route"
        if moment.multipath:
            yield moment.at_s, moment.path, f"multipath {moment.multipath}"
