"""Score the sound of a radio stream: time to first sound, silences, and jumps of the playback."""

from collections.abc import Sequence
from pathlib import Path

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value
from mplab.scenarios.base.scoring import sound

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
    """Return the values of `METRICS` for a cell. The recording is in `folder`, the cell's folder."""
    own = [Value("stream_requests", float(item["requests"])) for item in observations if item["event"] == "sound"]
    return [*sound.score(observations, folder), *own]
