"""Find stalls of a browser or of the host during a call. In a recording they would look like faults of the network."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

DISTURBED_MS = 50.0
"""Longest stall that does not disturb an utterance, ms. Over a clean link the player buffers only about 30 ms."""
MOST_DISTURBED = 0.5
"""Largest share of disturbed utterances; above it, too few utterances are left to rate the calls."""
LISTENING_S = 2.0
"""Longest time from the moment that speech is spoken until the phone plays it, s."""
AFTERMATH_S = 10.0
"""Time for which a stall stays audible after its end, s: the player grows its buffer at once, and seconds later shrinks
it by playing faster."""

Span = tuple[float, float]
Utterance: TypeAlias = Mapping[str, Any]
"""Fields of an observation ``utterance``: ``said_at``, ``start_s``, ``end_s``, and optionally ``stalls_ms``."""


class Stolen:
    """Recorder of the host's stalls, found by CPU steal: other virtual machines used the processors meanwhile.

    Args:
        read: returns the CPU steal of all processors since boot, s.
        now: returns the unix time, s.
    """

    def __init__(self, read: Callable[[], float], now: Callable[[], float]) -> None:
        self._read, self._now = read, now
        self._stolen_s, self._at = read(), now()
        self.stalls: list[list[float]] = []

    def look(self) -> None:
        """Record a stall if the CPU steal since the last call is audible: more than half of `DISTURBED_MS`."""
        stolen_s, at = self._read(), self._now()
        taken_s = stolen_s - self._stolen_s
        if 1000 * taken_s > DISTURBED_MS / 2:
            self.stalls.append([self._at, round(taken_s, 3)])
        self._stolen_s, self._at = stolen_s, at


def worst_ms(stalls: Iterable[Sequence[float]], span: Span) -> float:
    """Return the length of the longest stall that is audible in a time interval, ms; 0 without a stall.

    Args:
        stalls: start, unix time in s, and length, s, of each stall.
        span: start and end of the interval, unix times in s.
    """
    lengths = [length for began, length in stalls if began < span[1] and began + length + AFTERMATH_S > span[0]]
    return round(1000 * max(lengths, default=0.0), 1)


def span_of(utterance: Utterance) -> Span:
    """Return start and end of the time interval in which an utterance is spoken and heard, unix times in s."""
    said_at = float(utterance["said_at"])
    return said_at, said_at + float(utterance["end_s"]) - float(utterance["start_s"]) + LISTENING_S


def is_disturbed(utterance: Utterance) -> bool:
    """Return whether a stall of a browser or of the host disturbed an utterance (an observation ``utterance``)."""
    return max(utterance.get("stalls_ms", {}).values(), default=0.0) > DISTURBED_MS
