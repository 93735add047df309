"""What a listener notices: how soon sound comes, and where it stops or jumps."""

from collections.abc import Sequence
from pathlib import Path

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value
from mplab.analysis.scores import sound

METRICS: tuple[Metric, ...] = (
    *sound.METRICS,
    Metric(
        "stream_requests",
        "Requests for the stream",
        "",
        "lower",
        source="baerts2015 §6.2.2, figure 6.5",
        limits=NOT_NEGATIVE,
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: Path) -> list[Value]:
    """One value of each metric, from the recording in the cell's folder."""
    own = [Value("stream_requests", float(item["requests"])) for item in observations if item["event"] == "sound"]
    return [*sound.score(observations, folder), *own]
