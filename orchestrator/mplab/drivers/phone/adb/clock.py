"""Measure the offset of the phone's clock."""

import statistics
import time
from dataclasses import dataclass

from mplab.base.errors import DeviceError
from mplab.drivers.phone.adb.link import Link

_READS = 7


@dataclass(frozen=True)
class ClockOffset:
    """Offset of the phone's clock from this host's clock.

    Attributes:
        offset_s: seconds by which the phone is ahead, median of the reads.
        uncertainty_s: uncertainty of the offset: half of the median duration of a read.
        reads: number of reads.
    """

    offset_s: float
    uncertainty_s: float
    reads: int


def measure_clock(link: Link, reads: int = _READS) -> ClockOffset:
    """Measure the offset of the phone's clock from several reads.

    Each answer is compared with the host time in the middle between request and answer.

    Raises:
        DeviceError: the phone printed no time, or is lost.
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
