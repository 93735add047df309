"""Score page loads."""

from collections.abc import Sequence

from mplab.analysis.metric import NOT_NEGATIVE, Metric, Observation, Value
from mplab.scenarios.base.scoring import pages

METRICS: tuple[Metric, ...] = (
    *pages.METRICS,
    Metric(
        "page_first_byte",
        "First byte of the page",
        "s",
        "lower",
        pages.SITE,
        source="W3C Navigation Timing 2: responseStart",
        limits=NOT_NEGATIVE,
    ),
    Metric(
        "dom_content_loaded",
        "DOMContentLoaded",
        "s",
        "lower",
        pages.SITE,
        source="W3C Navigation Timing 2: domContentLoadedEventStart",
        limits=NOT_NEGATIVE,
    ),
    Metric(
        "dns_time",
        "Name lookup",
        "s",
        "lower",
        pages.SITE,
        source="W3C Resource Timing: domainLookupEnd − domainLookupStart",
        limits=NOT_NEGATIVE,
    ),
)
_FIELDS = {
    **pages.FIELDS,
    "page_first_byte": "time_to_first_byte_s",
    "dom_content_loaded": "dom_content_loaded_s",
    "dns_time": "dns_s",
}


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the values of each page."""
    return pages.score(observations, _FIELDS)
