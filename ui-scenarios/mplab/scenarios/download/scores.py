"""Score downloads: download time, goodput, time to first byte, name lookup, and times of bundles."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value, interface_bytes

_metric = partial(Metric, source="nikravesh2016 §5.1", limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric("download_time", "Download time", "s", "lower", ("size",), headline=True, activity="Downloading {size}"),
    _metric("goodput", "Goodput", "Mbit/s", "higher", ("size",), source="RFC 2647 §3.17"),
    _metric(
        "time_to_first_byte",
        "Time to first byte",
        "s",
        "lower",
        ("size",),
        source="W3C Resource Timing: responseStart − connectStart",
    ),
    _metric(
        "dns_time",
        "Name lookup",
        "s",
        "lower",
        ("size",),
        source="W3C Resource Timing: domainLookupEnd − domainLookupStart",
    ),
    _metric(
        "bundle_time", "Time for a bundle", "s", "lower", ("bundle",), headline=True, activity="Downloading {bundle}"
    ),
    _metric("flow_time", "Mean time of a flow in a bundle", "s", "lower", ("bundle",)),
    _metric(
        "failed_share",
        "Failed downloads",
        "%",
        "lower",
        source="failed repetitions of all files and bundles over all repetitions, only with repeat",
        limits=(0.0, 100.0),
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of `METRICS` for each file size and each bundle.

    Download time and time to first byte do not include the name lookup, which is a separate metric. If a proxy
    resolves the name, the lookup is part of both times, and its metric has no value. A failed download has no time;
    with ``repeat`` it counts in ``failed_share``.
    """
    values = [value for observation in observations for value in _values(observation)]
    repeated = Counter(observation["event"] for observation in observations if observation.get("repeat"))
    if total := repeated.total():
        values.append(Value("failed_share", 100 * repeated["failed"] / total))
    return values


def _values(observation: Observation) -> Iterator[Value]:
    value = partial(Value, repeat=int(observation.get("repeat", 0)))
    if observation["event"] == "download":
        labels = {"size": str(observation["size"])}
        duration = _duration_s(observation)
        yield value("download_time", duration, labels)
        if duration > 0:
            yield value("goodput", observation["bytes"] * 8 / duration / 1e6, labels)
        yield value("time_to_first_byte", observation["first_byte_s"] - observation["namelookup_s"], labels)
        if not observation.get("by_proxy"):
            yield value("dns_time", observation["namelookup_s"], labels)
    elif observation["event"] == "bundle":
        labels = {"bundle": str(observation["bundle"])}
        durations = [_duration_s(result) for result in observation["results"]]
        yield value("bundle_time", observation["total_s"], labels)
        yield value("flow_time", sum(durations) / len(durations), labels)
    yield from interface_bytes(observation)


def _duration_s(transfer: Observation) -> float:
    return float(transfer["total_s"] - transfer["namelookup_s"])
