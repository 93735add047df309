"""Define the measuring instruments of a cell: clocks, this host's load, the decoder of captures, a time limit."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from mplab.base.load import Sample, sample
from mplab.base.timelimit import TimeLimit
from mplab.cell.traces import read_trace
from mplab.format.captured import CapturedTables


@dataclass(frozen=True)
class Instruments:
    """Measuring instruments. The defaults are those of a real run on this host.

    Attributes:
        limit: limits the time of a scenario.
        monotonic: clock for durations, s.
        wall: Unix time, s.
        sleep: waits for a number of seconds.
        load: samples this host's counters.
        load_average: load average of the last minute.
        cpu_percent: CPU use of this host since the previous call, percent.
        cpus: number of processors of this host.
        read_trace: decodes capture files.
    """

    limit: TimeLimit
    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    load: Callable[[], Sample] = sample
    load_average: Callable[[], float] = lambda: os.getloadavg()[0]
    cpu_percent: Callable[[], float] = psutil.cpu_percent
    cpus: int = os.cpu_count() or 1
    read_trace: Callable[[Sequence[Path]], CapturedTables] = read_trace
