"""Score the response times of requests, and the share of answers that are late or missing."""

from collections.abc import Iterator, Sequence
from statistics import fmean, median, quantiles

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

_PERCENT = (0.0, 100.0)
_TIME = "W3C Resource Timing: responseEnd − startTime"
METRICS: tuple[Metric, ...] = (
    Metric(
        "request_time",
        "Time of a request",
        "s",
        "lower",
        ("quantile",),
        True,
        _TIME,
        NOT_NEGATIVE,
        activity="Requesting small objects ({quantile} quantile)",
    ),
    Metric(
        "missed_deadlines",
        "Requests that missed their deadline",
        "%",
        "lower",
        headline=True,
        source="RFC 7679 §3.6: a packet that comes later than a threshold counts as lost; here, an answer",
        limits=_PERCENT,
        activity="Requesting small objects",
        outcome="misses the deadline of {value} of the requests",
    ),
    Metric(
        "first_request_time",
        "First request after an idle time",
        "s",
        "lower",
        (),
        True,
        _TIME,
        NOT_NEGATIVE,
        activity="Requesting a small object after an idle time",
    ),
    Metric("unanswered", "Requests without an answer", "%", "lower", source="RFC 7680 §4.1", limits=_PERCENT),
    Metric("connections_opened", "Connections opened", "", "neither", source="curl: num_connects", limits=NOT_NEGATIVE),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of `METRICS` for a cell. The time of a request without an answer is ``patience_s``."""
    return [value for observation in observations for value in _values(observation)]


def _values(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "requests":
        yield from _requests(observation)
    yield from interface_bytes(observation)


def _requests(observation: Observation) -> Iterator[Value]:
    results, deadline_s = observation["results"], float(observation["deadline_s"])
    times = [_time_s(result, observation) for result in results]
    yield Value("request_time", median(times), {"quantile": "50 %"})
    last = quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]
    yield Value("request_time", last, {"quantile": "95 %"})
    late = sum(time_s > deadline_s or result["exit_code"] != 0 for time_s, result in zip(times, results, strict=True))
    yield Value("missed_deadlines", 100 * late / len(results))
    after_idle = [
        time_s for time_s, result in zip(times, results, strict=True) if result["number"] == 1 and result["round"] > 1
    ]
    if after_idle:
        yield Value("first_request_time", fmean(after_idle))
    yield Value("unanswered", 100 * sum(result["exit_code"] != 0 for result in results) / len(results))
    yield Value("connections_opened", sum(result["connections"] for result in results))


def _time_s(result: Observation, observation: Observation) -> float:
    return float(observation["patience_s"] if result["exit_code"] else result["total_s"])
