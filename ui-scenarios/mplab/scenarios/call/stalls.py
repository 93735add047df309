"""When either side or the whole host stood still: faults of the host, which look like faults of the network."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

DISTURBED_MS = 50.0
"""A longer stall disturbs an utterance: over a clean link the player has less than that in store (about 30 ms)."""
MOST_DISTURBED = 0.5
"""When more than this share of the utterances is disturbed, too few are left to tell how the calls were."""
LISTENING_S = 2.0
"""How long after it was said speech is still on its way."""
AFTERMATH_S = 10.0
"""How long a stall is heard: the player buffers more at once, and takes it back seconds later by hurrying."""

Span = tuple[float, float]
Utterance: TypeAlias = Mapping[str, Any]
"""Fields of an observation ``utterance``: ``said_at``, ``start_s``, ``end_s``, perhaps ``stalls_ms``."""


class Stolen:
    """When other virtual machines took the processors of this one: whatever ran there, the links too, stood still.

    Args:
        read: how much time was taken so far, all processors together, seconds.
        now: unix seconds.
    """

    def __init__(self, read: Callable[[], float], now: Callable[[], float]) -> None:
        self._read, self._now = read, now
        self._stolen_s, self._at = read(), now()
        self.stalls: list[list[float]] = []

    def look(self) -> None:
        """Add what was taken since the last look, if it was enough to be heard."""
        stolen_s, at = self._read(), self._now()
        taken_s = stolen_s - self._stolen_s
        if 1000 * taken_s > DISTURBED_MS / 2:
            self.stalls.append([self._at, round(taken_s, 3)])
        self._stolen_s, self._at = stolen_s, at


def worst_ms(stalls: Iterable[Sequence[float]], span: Span) -> float:
    """The longest stall that is heard within a span of time.

    Args:
        stalls: when they began, unix seconds, and for how long, seconds.
        span: from when to when, unix seconds.
    """
    lengths = [length for began, length in stalls if began < span[1] and began + length + AFTERMATH_S > span[0]]
    return round(1000 * max(lengths, default=0.0), 1)


def span_of(utterance: Utterance) -> Span:
    """From when to when an utterance was said and heard, unix seconds."""
    said_at = float(utterance["said_at"])
    return said_at, said_at + float(utterance["end_s"]) - float(utterance["start_s"]) + LISTENING_S


def is_disturbed(utterance: Utterance) -> bool:
    """Whether a stall of either side is heard in an utterance (observation ``utterance``)."""
    return max(utterance.get("stalls_ms", {}).values(), default=0.0) > DISTURBED_MS
