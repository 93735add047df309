"""What the user of a download feels: how long it takes."""

from collections.abc import Iterator, Sequence

from analysis.metric import Metric, Observation, Value

METRICS: tuple[Metric, ...] = (
    Metric("download_time", "Download time", "s", "lower", ("size",), headline=True),
    Metric("goodput", "Goodput", "Mbit/s", "higher", ("size",)),
    Metric("time_to_first_byte", "Time to first byte", "s", "lower", ("size",)),
    Metric("dns_time", "Name lookup", "s", "lower", ("size",)),
    Metric("bundle_time", "Time for a bundle", "s", "lower", ("bundle",), headline=True),
    Metric("flow_time", "Mean time of a flow in a bundle", "s", "lower", ("bundle",)),
)


def score(observations: Sequence[Observation], tables: object) -> list[Value]:
    """One value of each metric per file size or bundle.

    Download time and time to first byte count from the start of the connection: the name lookup is a metric of its own.
    """
    return [value for observation in observations for value in _values(observation)]


def _values(observation: Observation) -> Iterator[Value]:
    if observation["event"] == "download":
        labels = {"size": str(observation["size"])}
        duration = _duration_s(observation)
        yield Value("download_time", duration, labels)
        if duration > 0:
            yield Value("goodput", observation["bytes"] * 8 / duration / 1e6, labels)
        yield Value("time_to_first_byte", observation["first_byte_s"] - observation["namelookup_s"], labels)
        yield Value("dns_time", observation["namelookup_s"], labels)
    elif observation["event"] == "bundle":
        labels = {"bundle": str(observation["bundle"])}
        durations = [_duration_s(result) for result in observation["results"]]
        yield Value("bundle_time", observation["total_s"], labels)
        yield Value("flow_time", sum(durations) / len(durations), labels)


def _duration_s(transfer: Observation) -> float:
    return float(transfer["total_s"] - transfer["namelookup_s"])
