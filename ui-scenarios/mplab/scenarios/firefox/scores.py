"""Score page loads in Firefox."""

from collections.abc import Sequence

from mplab.analysis.metric import INTERFACE_BYTES, Metric, Observation, Value, interface_bytes
from mplab.scenarios.base.scoring import pages

METRICS: tuple[Metric, ...] = (
    *pages.METRICS,
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: object) -> list[Value]:
    """Return the page load measurements of each load of each site, and the bytes on the phone's interfaces."""
    carried = [value for observation in observations for value in interface_bytes(observation)]
    return [*pages.score(observations), *carried]
