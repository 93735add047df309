"""Score the throughput that iperf3 measured in each direction."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

_WAY = ("direction",)
METRICS: tuple[Metric, ...] = (
    Metric(
        "goodput",
        "Goodput",
        "Mbit/s",
        "higher",
        _WAY,
        True,
        "RFC 2647 §3.17",
        NOT_NEGATIVE,
        activity="Transferring data at full speed ({direction})",
        outcome="reaches {value}",
    ),
    Metric(
        "goodput_variation",
        "Variation of goodput",
        "%",
        "lower",
        _WAY,
        source="coefficient of variation of the goodput of each second, as the phone's iperf3 prints it",
        limits=NOT_NEGATIVE,
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the measurements of iperf3 in each direction, and the bytes on the phone's interfaces."""
    return [value for observation in observations for value in _values(observation)]


def _values(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "iperf":
        labels = {"direction": observation["direction"]}
        yield Value("goodput", observation["received_bps"] / 1e6, labels)
        seconds = observation.get("per_second_bps", ())
        if len(seconds) > 1 and (mean := fmean(seconds)) > 0:
            yield Value("goodput_variation", 100 * stdev(seconds) / mean, labels)
    yield from interface_bytes(observation)
