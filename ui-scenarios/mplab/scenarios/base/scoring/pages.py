"""Score page loads, for the scenarios that use a browser.

An observation ``page`` describes one load: ``site``, and the browser's measurements, with times in seconds from the
start of the navigation. Missing measurements are None.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from mplab.analysis.metric import LOOK_RESOLUTION, NOT_NEGATIVE, Metric, Observation, Value, look_resolution

SITE = ("site",)
_metric = partial(Metric, limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    _metric(
        "page_load_time_mean",
        "Page load time, mean over sites",
        "s",
        "lower",
        headline=True,
        source="han2015 §3.3",
        activity="Loading a web page",
    ),
    _metric("page_load_time", "Page load time", "s", "lower", SITE, source="han2015 §3.3"),
    _metric("first_contentful_paint", "First contentful paint", "s", "lower", SITE, source="W3C Paint Timing"),
    _metric(
        "largest_contentful_paint",
        "Largest contentful paint",
        "s",
        "lower",
        SITE,
        source="W3C Largest Contentful Paint",
    ),
    _metric("page_bytes", "Bytes transferred", "bytes", "neither", SITE, source="han2015 table 1"),
    _metric(
        "page_connections",
        "Connections of the page",
        "",
        "neither",
        SITE,
        source="CDP Network.Response: connectionId; W3C Resource Timing: connectStart",
    ),
    LOOK_RESOLUTION,
)
"""Metrics of every scenario that loads pages."""

FIELDS: Mapping[str, str] = {
    "page_load_time": "page_load_time_s",
    "first_contentful_paint": "first_contentful_paint_s",
    "largest_contentful_paint": "largest_contentful_paint_s",
    "page_bytes": "transferred_bytes",
    "page_connections": "connections",
}
"""Metric of a site's loads → field of the observation ``page`` that has its value."""


def score(observations: Sequence[Observation], fields: Mapping[str, str] = FIELDS) -> list[Value]:
    """Return each metric of each load of each site, and the mean page load time over all sites.

    The mean over sites is that of the sites' means. If a site is loaded several times, values have the number of the
    load. The page load time is the time from navigation start to the load event (han2015 §3.3). Missing measurements
    are left out.

    Args:
        observations: all observations of a cell.
        fields: metric → field of the observation ``page`` that has its values: `FIELDS`, plus fields that only one
            scenario has.
    """
    pages: dict[str, list[Observation]] = defaultdict(list)
    for observation in observations:
        if observation["event"] == "page":
            pages[str(observation["site"])].append(observation)
    values = [
        Value(metric, float(load[name]), {"site": site}, number if len(loads) > 1 else 0)
        for site, loads in pages.items()
        for metric, name in fields.items()
        for number, load in enumerate(loads, 1)
        if load.get(name) is not None
    ]
    times: dict[str, list[float]] = defaultdict(list)
    for value in values:
        if value.metric == "page_load_time":
            times[value.labels["site"]].append(value.value)
    mean = [Value("page_load_time_mean", _mean([_mean(seen) for seen in times.values()]))] if times else []
    return [*mean, *values, *look_resolution(item for loads in pages.values() for item in loads)]


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
