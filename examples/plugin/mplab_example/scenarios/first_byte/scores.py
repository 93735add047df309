"""Metrics and scores of the scenario's observations."""

from collections.abc import Sequence
from statistics import median

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

METRICS: tuple[Metric, ...] = (
    Metric(
        "first_byte",
        "Time to the first byte, median",
        "s",
        "lower",
        headline=True,
        source="RFC 9110",
        limits=NOT_NEGATIVE,
        activity="Requesting a page",
        outcome="delivers the first byte after {value}",
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the median time to the first byte, and the bytes on the phone's interfaces."""
    times_s = [observation["time_s"] for observation in observations if observation["event"] == "first_byte"]
    values = [Value("first_byte", median(times_s))] if times_s else []
    return values + [value for observation in observations for value in interface_bytes(observation)]
