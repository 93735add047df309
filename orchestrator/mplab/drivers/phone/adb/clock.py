"""How far the phone's clock is off."""

import statistics
import time
from dataclasses import dataclass

from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.link import Link

_READS = 7


@dataclass(frozen=True)
class ClockOffset:
    """Of the phone's clock against this host's.

    Attributes:
        offset_s: seconds that it is ahead, the median of the reads.
        uncertainty_s: half of the median time that a read took: the offset is known to this.
        reads: how many there were.
    """

    offset_s: float
    uncertainty_s: float
    reads: int


def measure_clock(link: Link, reads: int = _READS) -> ClockOffset:
    """Ask for the time several times; each answer counts for the middle of the question's time.

    Raises:
        DeviceError: the phone has no such clock, or has gone.
    """
    offsets, times = [], []
    for _ in range(reads):
        asked = time.time()
        said = link.run("date +%s.%N", timeout_s=10).stdout.decode(errors="replace").strip()
        answered = time.time()
        try:
            offsets.append(float(said) - (asked + answered) / 2)
        except ValueError:
            raise DeviceError(link.label, f"'date +%s.%N' says {said!r}, no time") from None
        times.append(answered - asked)
    return ClockOffset(statistics.median(offsets), statistics.median(times) / 2, reads)
