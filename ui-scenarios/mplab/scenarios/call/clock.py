"""When the samples of a recording came."""

from collections.abc import Sequence

import numpy as np

_AROUND_S = 1.0
_LEAST_PAUSE_S = 0.005


class Clock:
    """The times of a track.

    Args:
        pairs: samples before a moment, and the moment, unix seconds; about ten in a second.
        rate_hz: samples per second.

    A pair is late by what the program had to wait for its turn; the least late one within a second before or after
    tells the track's own time. What stays late is a pause of the player: samples that were never asked for.
    """

    def __init__(self, pairs: Sequence[Sequence[float]], rate_hz: float) -> None:
        columns = np.asarray(pairs, dtype=float)
        self._positions_s = columns[:, 0] / rate_hz
        self._times = columns[:, 1]
        late = self._times - self._positions_s
        starts = np.searchsorted(self._positions_s, self._positions_s - _AROUND_S)
        ends = np.searchsorted(self._positions_s, self._positions_s + _AROUND_S, side="right")
        self._began = np.array([late[start:end].min() for start, end in zip(starts, ends, strict=True)])

    def time_at(self, position_s: float) -> float:
        """When what is `position_s` after the recording's start came, unix seconds."""
        return float(np.interp(position_s, self._positions_s, self._began)) + position_s

    def position_at(self, time: float) -> float:
        """What came at a time, in seconds after the recording's start."""
        found: float = np.interp(time, np.maximum.accumulate(self._began + self._positions_s), self._positions_s)
        return float(found)

    def pauses(self) -> list[list[float]]:
        """When the track stood still (unix seconds, within 0.2 s), and for how long, seconds."""
        steps = np.diff(self._began)
        return [[float(self._times[at]) - _AROUND_S, float(steps[at])] for at in np.flatnonzero(steps > _LEAST_PAUSE_S)]

    @property
    def pause_s(self) -> float:
        """For how long the player stood still, all in all."""
        return float(np.maximum(np.diff(self._began), 0).sum())
