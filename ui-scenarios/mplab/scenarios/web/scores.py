"""Score page loads in Chromium."""

from collections.abc import Sequence
from functools import partial

from mplab.analysis.metric import NOT_NEGATIVE, Metric, Observation, Value
from mplab.scenarios.base.scoring import pages

_metric = partial(Metric, limits=NOT_NEGATIVE)
METRICS: tuple[Metric, ...] = (
    *pages.METRICS,
    _metric(
        "page_first_byte",
        "First byte of the page",
        "s",
        "lower",
        pages.SITE,
        source="W3C Navigation Timing 2: responseStart",
    ),
    _metric(
        "dom_content_loaded",
        "DOMContentLoaded",
        "s",
        "lower",
        pages.SITE,
        source="W3C Navigation Timing 2: domContentLoadedEventStart",
    ),
    _metric(
        "dns_time",
        "Name lookup",
        "s",
        "lower",
        pages.SITE,
        source="W3C Resource Timing: domainLookupEnd − domainLookupStart",
    ),
)
_FIELDS = {
    **pages.FIELDS,
    "page_first_byte": "time_to_first_byte_s",
    "dom_content_loaded": "dom_content_loaded_s",
    "dns_time": "dns_s",
}


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the page load measurements of each load of each site, and the mean page load time over all sites."""
    return pages.score(observations, _FIELDS)
