"""Score delay, jitter, loss and reordering of datagrams in each direction."""

from collections.abc import Iterator, Sequence
from functools import partial

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

QUANTILES = {"p5": "5 %", "median": "50 %", "p95": "95 %", "p99": "99 %"}
"""Key in the measured distributions → label ``quantile`` of the value."""

DIRECTIONS = ("up", "down")

_WAY, _PERCENT = ("direction",), (0.0, 100.0)
_ACTIVITY = "Sending datagrams ({direction})"
_SEC33 = "nikravesh2016 §3.3"
_metric = partial(Metric, source=_SEC33, limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "jitter",
        "Jitter",
        "ms",
        "lower",
        _WAY,
        headline=True,
        source="RFC 3550 §6.4.1",
        activity=_ACTIVITY,
        outcome="has a jitter of {value}",
    ),
    _metric(
        "delay_spread",
        "Standard deviation of the one-way delay",
        "ms",
        "lower",
        _WAY,
        headline=True,
        activity=_ACTIVITY,
        outcome="has a standard deviation of the one-way delay of {value}",
    ),
    _metric(
        "reordered",
        "Datagrams out of order",
        "%",
        "lower",
        _WAY,
        headline=True,
        source="RFC 4737 §3.3",
        limits=_PERCENT,
        activity=_ACTIVITY,
        outcome="reorders {value} of them",
    ),
    _metric("lost", "Datagrams lost", "%", "lower", _WAY, source="RFC 7680 §4.1", limits=_PERCENT),
    _metric("duplicates", "Datagrams that came twice", "", "lower", _WAY, source="RFC 5560"),
    # No limits: the clocks of both ends may differ outside of the virtual lab.
    Metric("one_way_delay", "One-way delay", "ms", "lower", (*_WAY, "quantile"), source="RFC 7679 §5.1"),
    _metric("round_trip", "Round-trip time", "ms", "lower", ("quantile",), source="RFC 2681 §4.1"),
    _metric("reordering_delay", "Mean wait for the order at the receiver", "ms", "lower", _WAY),
    _metric("reordering_delay_95", "Wait for the order at the receiver, 95 %", "ms", "lower", _WAY),
    _metric(
        "longest_silence", "Longest time without an answer", "ms", "lower", source="docs/mpflex.md: longest_gap_ms"
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return delay, jitter, loss and reordering of datagrams per direction, and the bytes on the phone's interfaces."""
    return [value for observation in observations for value in _values(observation)]


def _values(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "datagrams":
        yield from _flow(observation)
    yield from interface_bytes(observation)


def _flow(observation: Observation) -> Iterator[Value]:
    for direction in DIRECTIONS:
        measured, labels = observation[direction], {"direction": direction}
        yield Value("lost", measured["lost_percent"], labels)
        yield Value("duplicates", measured["duplicates"], labels)
        yield Value("reordered", measured["reordered_percent"], labels)
        yield Value("jitter", measured["jitter_ms"], labels)
        above, least = measured["delay_variation_ms"], measured["least_delay_ms"]
        yield Value("delay_spread", above["stdev"], labels)
        for key, quantile in QUANTILES.items():
            yield Value("one_way_delay", least + above[key], {**labels, "quantile": quantile})
        yield Value("reordering_delay", measured["reordering_delay_ms"]["mean"], labels)
        yield Value("reordering_delay_95", measured["reordering_delay_ms"]["p95"], labels)
    for key, quantile in QUANTILES.items():
        yield Value("round_trip", observation["rtt_ms"][key], {"quantile": quantile})
    yield Value("longest_silence", observation["longest_gap_ms"])
