"""Whether the host was quick enough for a video: what a player tells that no network can have caused."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

MAX_DROPPED_PERCENT = 5.0
"""More frames that came too late for the screen: the picture was not what the network gave."""
MAX_CLOCK_GAP_S = 1.0
"""Longer between two samples, which the page takes every 250 ms: the page itself stood still, and its times with it."""
MIN_BUFFER_S = 1.0
"""A player that waits with this much in its buffer waits for the host.

See ``host_stalls`` in `mplab.analysis.scores.playback`.
"""

Record = Mapping[str, Any]


def disturbances(records: Sequence[Record]) -> list[str]:
    """What of the host has disturbed a clip, a sentence each; empty when nothing has.

    Args:
        records: the player's, of one clip, in their order: ``sample`` (``at``, ``frames``, ``dropped``), ``playing``,
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
