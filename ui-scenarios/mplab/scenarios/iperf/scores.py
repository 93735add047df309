"""What iperf3 measured, each direction of its own."""

from collections.abc import Iterator, Sequence

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

_WAY = ("direction",)
METRICS: tuple[Metric, ...] = (
    Metric("goodput", "Goodput", "Mbit/s", "higher", _WAY, True, "RFC 2647 §3.17", NOT_NEGATIVE),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """The values of each direction, and of what the interfaces carried."""
    return [value for observation in observations for value in _values(observation)]


def _values(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "iperf":
        yield Value("goodput", observation["received_bps"] / 1e6, {"direction": observation["direction"]})
    yield from interface_bytes(observation)
