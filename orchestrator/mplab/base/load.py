"""Measure the load of the host during a measurement, and judge whether it was too high.

All values are those of the whole host, except `Sample.own_s`. In a virtual lab, which has its own PID namespace,
`own_s` is the CPU time of the lab's processes only.
"""

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

MAX_PRESSURE_PERCENT = 50.0
"""Maximum share of the time in which a task waited for a processor. With more, measured programs had to wait, too."""

MAX_STEAL_PERCENT = 5.0
"""Maximum share of the processors' time that other virtual machines took."""

_BEAT_S = 0.5
_STALL_S = 3.0
"""Delay of the watching thread's wake-up, in seconds, above which a stall is recorded."""

_TICKS = os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _STEAL, _FIELDS = 0, 1, 2, 7, 8
_UTIME, _CSTIME = 11, 14
"""Columns of ``/proc/<pid>/stat`` after the name: utime to cstime (proc_pid_stat(5))."""


@dataclass(frozen=True)
class Sample:
    """Counters of the host at one time, all in seconds.

    Attributes:
        t: monotonic clock.
        programs_s: CPU time of user, nice and system, summed over all processors.
        total_s: time of all processors, including idle time.
        steal_s: CPU time taken by other virtual machines.
        own_s: CPU time of the processes that ``/proc`` shows, and of their ended children.
        pressure_s: time with at least one task waiting for a processor (PSI, ``some``); None: the kernel has no PSI.
    """

    t: float
    programs_s: float
    total_s: float
    steal_s: float
    own_s: float
    pressure_s: float | None


@dataclass(frozen=True)
class HostLoad:
    """Load of the host between two samples.

    Attributes:
        busy_percent: share of all processors' time spent in programs and in the kernel for them.
        free_cpus: mean number of processors that other programs and other virtual machines left to the lab.
        pressure_percent: share of the time in which a task waited for a processor (PSI, ``some``); None: unknown.
        steal_percent: share of all processors' time taken by other virtual machines.
    """

    busy_percent: float
    free_cpus: float
    pressure_percent: float | None
    steal_percent: float


def sample(proc: Path = Path("/proc")) -> Sample:
    """Return the host's counters now, read from the proc file system at `proc`."""
    first = (proc / "stat").read_text().splitlines()[0].split()[1:]
    fields = [int(value) / _TICKS for value in first[:_FIELDS]]
    return Sample(
        t=time.monotonic(),
        programs_s=fields[_USER] + fields[_NICE] + fields[_SYSTEM],
        total_s=sum(fields),
        steal_s=fields[_STEAL],
        own_s=sum(_process_s(path) for path in proc.glob("[0-9]*/stat")),
        pressure_s=_pressure_s(proc / "pressure" / "cpu"),
    )


def steal_s(proc: Path = Path("/proc")) -> float:
    """Return the time that other virtual machines have taken since boot, summed over all processors, seconds."""
    return int((proc / "stat").read_text().splitlines()[0].split()[1 + _STEAL]) / _TICKS


def between(before: Sample, after: Sample, *, cpus: int) -> HostLoad:
    """Return the load of a host with `cpus` processors in the time between two samples."""
    elapsed = max(after.t - before.t, 1e-6)
    total = max(after.total_s - before.total_s, 1e-6)
    programs = after.programs_s - before.programs_s
    others = max(0.0, programs - max(0.0, after.own_s - before.own_s))
    steal = after.steal_s - before.steal_s
    waited = None
    if before.pressure_s is not None and after.pressure_s is not None:
        waited = round(min(100.0, 100 * (after.pressure_s - before.pressure_s) / elapsed), 1)
    return HostLoad(
        busy_percent=round(100 * programs / total, 1),
        free_cpus=round(max(0.0, cpus * (1 - (others + steal) / total)), 2),
        pressure_percent=waited,
        steal_percent=round(100 * steal / total, 1),
    )


class Stalls:
    """Record, within its context, each time that this process did not run for more than 3 s.

    Such a stall means that the process was stopped or suspended, or got no processor. `warnings` has one sentence for
    each stall.

    Args:
        doing: returns the current step, for the warning.
        clock: monotonic clock, seconds.
    """

    def __init__(self, doing: Callable[[], str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._doing = doing
        self._clock = clock
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="stalls", daemon=True)
        self.warnings: list[str] = []

    def __enter__(self) -> Self:
        """Start the thread that detects stalls of this process."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread that detects stalls."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        ended = False
        while not ended:
            before = self._clock()
            ended = self._end.wait(_BEAT_S)
            late_s = self._clock() - before - _BEAT_S
            if late_s > _STALL_S:
                text = f"mplab did not run for {late_s:.1f} s ({self._doing()})"
                self.warnings.append(f"{text}: stopped, or the host was too busy")


def judge_load(load: HostLoad, needed: float) -> Sequence[str]:
    """Return why the host was too busy for a scenario that needs `needed` processors, one sentence for each reason.

    Empty: the host was not too busy.
    """
    reasons = []
    if load.free_cpus < needed:
        reasons.append(
            f"the host was overloaded: other programs left {load.free_cpus:g} processors, the scenario needs {needed:g}"
        )
    if load.pressure_percent is not None and load.pressure_percent > MAX_PRESSURE_PERCENT:
        reasons.append(
            f"the host was overloaded: a program waited for a processor {load.pressure_percent:g} % of the time "
            f"(CPU pressure; more than {MAX_PRESSURE_PERCENT:g} %)"
        )
    if load.steal_percent > MAX_STEAL_PERCENT:
        reasons.append(
            f"the host was overloaded: {load.steal_percent:g} % of the processors' time went to other virtual machines "
            f"(steal; more than {MAX_STEAL_PERCENT:g} %)"
        )
    return reasons


def _process_s(stat: Path) -> float:
    try:
        columns = stat.read_text().rpartition(")")[2].split()
    except OSError:  # the process has just ended
        return 0.0
    return sum(int(value) for value in columns[_UTIME : _CSTIME + 1]) / _TICKS


def _pressure_s(path: Path) -> float | None:
    try:
        some = path.read_text().splitlines()[0]
        return int(some.rpartition("total=")[2]) / 1e6
    except (OSError, ValueError, IndexError):
        return None
