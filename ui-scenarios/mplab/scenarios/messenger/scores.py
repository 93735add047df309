"""Score the delivery of messages: their delays, and the share that was not delivered."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median

from mplab.analysis.metric import (
    INTERFACE_BYTES,
    LOOK_RESOLUTION,
    NOT_NEGATIVE,
    Metric,
    Observation,
    Value,
    interface_bytes,
    look_resolution,
)

_metric = partial(Metric, source="baerts2015 §4.3", limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "delivery_delay",
        "Delivery delay seen by the sender, median",
        "ms",
        "lower",
        ("kind",),
        headline=True,
        activity="Sending messages ({kind})",
        outcome="delivers one in {value}",
        way="up",
    ),
    _metric("delivery_delay_max", "Delivery delay seen by the sender, longest", "ms", "lower", ("kind",)),
    _metric("message_one_way_delay", "Until the message is shown, median", "ms", "lower", ("kind",)),
    _metric("message_one_way_delay_max", "Until the message is shown, longest", "ms", "lower", ("kind",)),
    _metric(
        "undelivered",
        "Messages not delivered",
        "%",
        "lower",
        headline=True,
        limits=(0.0, 100.0),
        activity="Sending messages",
        outcome="loses {value} of them",
        way="up",
    ),
    _metric("sign_in_time", "Until the contacts are there", "s", "lower"),
    LOOK_RESOLUTION,
    *INTERFACE_BYTES,
)

_DELAYS = {"delivery_delay": "delivery_delay_s", "message_one_way_delay": "one_way_delay_s"}


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of `METRICS` for a cell: among others, delays per kind of message, and the undelivered share.

    A message that was not delivered has no delay: it counts only in ``undelivered``.
    """
    messages = [item for item in observations if item["event"] == "message"]
    values = list(_delays(messages))
    if messages:
        lost = sum(not item["delivered"] for item in messages)
        values.append(Value("undelivered", 100 * lost / len(messages)))
    values += look_resolution(observations)
    return values + [value for item in observations for value in _others(item)]


def _delays(messages: Sequence[Observation]) -> Iterator[Value]:
    kinds: dict[str, list[Observation]] = defaultdict(list)
    for item in messages:
        kinds[str(item["kind"])].append(item)
    for kind, alike in kinds.items():
        for metric, name in _DELAYS.items():
            delays_ms = [1000 * float(item[name]) for item in alike if item[name] is not None]
            if delays_ms:
                yield Value(metric, median(delays_ms), {"kind": kind})
                yield Value(f"{metric}_max", max(delays_ms), {"kind": kind})


def _others(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "signed_in":
        yield Value("sign_in_time", observation["duration_s"])
    yield from interface_bytes(observation)
