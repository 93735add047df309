"""Score the sound of a music player: time to first sound, silences, and jumps of the playback."""

from collections.abc import Sequence
from pathlib import Path

from mplab.analysis.metric import INTERFACE_BYTES, NOT_NEGATIVE, Metric, Observation, Value
from mplab.scenarios.base.scoring import sound

METRICS: tuple[Metric, ...] = (
    *sound.METRICS,
    Metric(
        "chunk_failures",
        "Chunks that had to be asked for again",
        "",
        "lower",
        source="docs/scenarios.md",
        limits=NOT_NEGATIVE,
    ),
    Metric(
        "sound_bytes",
        "Bytes of sound that the player got",
        "kB",
        "neither",
        source="baerts2015 table 4.1",
        limits=NOT_NEGATIVE,
    ),
    *INTERFACE_BYTES,
)


def score(observations: Sequence[Observation], tables: object, folder: Path) -> list[Value]:
    """Return the values of `METRICS` for a cell. The recording is in `folder`, the cell's folder."""
    own = [
        value
        for item in observations
        if item["event"] == "sound"
        for value in (Value("chunk_failures", float(item["failures"])), Value("sound_bytes", item["bytes"] / 1000))
    ]
    return [*sound.score(observations, folder), *own]
