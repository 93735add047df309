"""Clocks, host load and a time limit that a test controls."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from mplab.base.errors import StepError
from mplab.base.load import Sample


class FakeClock:
    """The host's clocks; `jump` advances both. The monotonic clock moves only then, however busy the host is."""

    def __init__(self) -> None:
        self._ahead_s = 0.0

    def jump(self, seconds: float) -> None:
        """Advance both clocks at once, as after a suspend of the host."""
        self._ahead_s += seconds

    def monotonic(self) -> float:
        """Return the monotonic time, s."""
        return 1000.0 + self._ahead_s

    def wall(self) -> float:
        """Return the Unix time, s."""
        return time.time() + self._ahead_s


class FakeHost:
    """Load of a host with two processors: from now on, other programs use the share `busy` of the time."""

    cpus = 2

    def __init__(self) -> None:
        self.busy = 0.0
        self._samples = 0

    def load(self) -> Sample:
        """Return counters that have grown by one second since the sample before."""
        t = float(self._samples)
        self._samples += 1
        return Sample(t=t, programs_s=t * 2 * self.busy, total_s=t * 2, steal_s=0.0, own_s=0.0, pressure_s=0.0)

    def load_average(self) -> float:
        """Return the load average of the last minute."""
        return 0.25

    def cpu_percent(self) -> float:
        """Return the CPU usage since the last call, percent."""
        return 12.5


class FakeLimit:
    """A time limit that expires at the end of the next `expires` blocks, and never after them."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, str]] = []
        self.expires = 0
        """Number of the next blocks that take too long."""

    @contextmanager
    def __call__(self, seconds: float, what: str) -> Iterator[None]:
        """See `mplab.base.timelimit.alarm`."""
        self.asked.append((seconds, what))
        yield
        if self.expires:
            self.expires -= 1
            raise StepError(f"{what}: not finished within {seconds:g} s")
