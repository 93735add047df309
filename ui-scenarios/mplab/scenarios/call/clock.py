"""Map positions in a recording to wall-clock time, and back."""

from collections.abc import Sequence

import numpy as np

_AROUND_S = 1.0
_LEAST_PAUSE_S = 0.005


class Clock:
    """The wall-clock times of a track's samples.

    The recording program notes pairs: the number of samples so far, and the wall-clock time. A pair is late when the
    program waited for a processor. Each pair therefore takes the smallest delay of all pairs within 1 s before and
    after it. A delay that lasts longer is a pause of the track: the player requested no samples.

    Args:
        pairs: number of samples so far, and unix time, s; about ten pairs per second.
        rate_hz: samples per second.
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
        """Return the unix time, s, of the sample at `position_s` seconds from the start of the recording."""
        return float(np.interp(position_s, self._positions_s, self._began)) + position_s

    def position_at(self, time: float) -> float:
        """Return the position, in seconds from the start of the recording, of the sample at a unix time, s."""
        found: float = np.interp(time, np.maximum.accumulate(self._began + self._positions_s), self._positions_s)
        return float(found)

    def pauses(self) -> list[list[float]]:
        """Return the pauses of the track: start (unix seconds, within 0.2 s) and length (seconds)."""
        steps = np.diff(self._began)
        return [[float(self._times[at]) - _AROUND_S, float(steps[at])] for at in np.flatnonzero(steps > _LEAST_PAUSE_S)]

    @property
    def pause_s(self) -> float:
        """Total length of all pauses, s."""
        return float(np.maximum(np.diff(self._began), 0).sum())
