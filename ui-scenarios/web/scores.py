"""What the user of a browser feels: how long pages take."""

from collections import defaultdict
from collections.abc import Sequence

from analysis.metric import Metric, Observation, Value

METRICS: tuple[Metric, ...] = (
    Metric("page_load_time_mean", "Page load time, mean over sites", "s", "lower", headline=True),
    Metric("page_load_time", "Page load time", "s", "lower", ("site",)),
    Metric("time_to_first_byte", "Time to first byte", "s", "lower", ("site",)),
    Metric("first_contentful_paint", "First contentful paint", "s", "lower", ("site",)),
    Metric("largest_contentful_paint", "Largest contentful paint", "s", "lower", ("site",)),
    Metric("dom_content_loaded", "DOMContentLoaded", "s", "lower", ("site",)),
    Metric("dns_time", "Name lookup", "s", "lower", ("site",)),
    Metric("page_bytes", "Bytes transferred", "bytes", "neither", ("site",)),
)
_FIELDS = {
    "page_load_time": "page_load_time_s",
    "time_to_first_byte": "time_to_first_byte_s",
    "first_contentful_paint": "first_contentful_paint_s",
    "largest_contentful_paint": "largest_contentful_paint_s",
    "dom_content_loaded": "dom_content_loaded_s",
    "dns_time": "dns_s",
    "page_bytes": "transferred_bytes",
}


def score(observations: Sequence[Observation], tables: object) -> list[Value]:
    """One value of each metric per site, the mean over its loads; and the mean of the sites' page load times.

    Page load time is navigation start → load event (han2015 §3.3). A paint that was not seen gives no value.
    """
    pages: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        if observation["event"] == "page":
            pages[str(observation["site"])].append(observation)
    values = [
        Value(metric, _mean(seen), {"site": site})
        for site, loads in pages.items()
        for metric, name in _FIELDS.items()
        if (seen := [float(load[name]) for load in loads if load[name] is not None])
    ]
    times = [value.value for value in values if value.metric == "page_load_time"]
    return [Value("page_load_time_mean", _mean(times)), *values] if times else values


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
