"""Detect that the host was too slow for a video: from player records that a slow network cannot cause."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MAX_DROPPED_PERCENT = 5.0
"""Largest accepted share of dropped frames, %. A larger share means that the host limited the picture."""
MAX_CLOCK_GAP_S = 1.0
"""Largest accepted gap between two samples, s. The page samples every 250 ms: after a larger gap it was blocked."""
MIN_BUFFER_S = 1.0
"""Smallest buffer level, s, at which a stall is the host's: ``host_stalls`` in `scoring.playback`."""

Record = Mapping[str, Any]


def disturbances(records: Sequence[Record]) -> list[str]:
    """Return a sentence for each kind of disturbance of a clip by the host; empty: the host was fast enough.

    Args:
        records: the player's records of one clip, in order: ``sample`` (``at``, ``frames``, ``dropped``), ``playing``,
            ``waiting`` (``buffer_s``).
    """
    samples = [record for record in records if record["event"] == "sample"]
    return [*_dropped(samples), *_gaps(samples), *_stalls(records)]


def _dropped(samples: Sequence[Record]) -> list[str]:
    if not samples or not samples[-1]["frames"]:
        return []
    percent = 100 * samples[-1]["dropped"] / samples[-1]["frames"]
    if percent <= MAX_DROPPED_PERCENT:
        return []
    return [
        f"the host was busy: {percent:.1f} % of the frames came too late for the screen "
        f"(more than {MAX_DROPPED_PERCENT:g} %)"
    ]


def _gaps(samples: Sequence[Record]) -> list[str]:
    longest_s = max((after["at"] - before["at"] for before, after in pairwise(samples)), default=0.0)
    if longest_s <= MAX_CLOCK_GAP_S:
        return []
    return [f"the host was busy: the page stood still for {longest_s:.1f} s (more than {MAX_CLOCK_GAP_S:g} s)"]


def _stalls(records: Sequence[Record]) -> list[str]:
    began = next((index for index, record in enumerate(records) if record["event"] == "playing"), len(records))
    stalls = sum(
        record["event"] == "waiting" and record.get("buffer_s", 0.0) >= MIN_BUFFER_S for record in records[began:]
    )
    if not stalls:
        return []
    return [f"the host was busy: the player stopped {stalls} times with {MIN_BUFFER_S:g} s or more in its buffer"]
