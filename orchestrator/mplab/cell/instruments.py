"""Define a cell's measuring instruments: clocks, host load, decoder of captures, time limit. Compute its traffic."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from mplab.base.errors import DeviceError
from mplab.base.load import Sample, sample
from mplab.base.programs import MPTRACE
from mplab.base.timelimit import TimeLimit
from mplab.format.captured import CapturedTables, SubflowRow

_MPTRACE_TIMEOUT_S = 60.0


NO_TRACE = CapturedTables(connections=[], subflows=[])


def read_trace(files: Sequence[Path]) -> CapturedTables:
    """Decode the connections and subflows in captures with `mptrace`.

    Raises:
        DeviceError: `mptrace` cannot read them, or takes more than 60 s.
    """
    argv = [str(MPTRACE.path()), *map(str, files), "--json", "--tables", "connections,subflows"]
    try:
        completed = subprocess.run(argv, capture_output=True, text=True, timeout=_MPTRACE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        problem = f"did not read the phone's captures within {_MPTRACE_TIMEOUT_S:g} s"
        raise DeviceError("mptrace", problem, command=tuple(argv)) from error
    if completed.returncode != 0:
        raise DeviceError(
            "mptrace",
            "cannot read the phone's captures",
            command=tuple(argv),
            exit_code_found=completed.returncode,
            stderr=completed.stderr,
        )
    tables: CapturedTables = json.loads(completed.stdout)
    return tables


def traffic(
    before: Mapping[str, int], after: Mapping[str, int], interfaces: Iterable[str]
) -> dict[str, dict[str, int]]:
    """Return interface → traffic with headers: ``{bytes_up, bytes_down, packets_up, packets_down}``.

    The traffic is the difference of the phone's counters `before` and `after`. An interface without counters is left
    out: a phone without root may hide the counters.
    """
    names = {"bytes_up": "tx_bytes", "bytes_down": "rx_bytes", "packets_up": "tx_packets", "packets_down": "rx_packets"}
    return {
        interface: {name: after[f"{interface}.{key}"] - before[f"{interface}.{key}"] for name, key in names.items()}
        for interface in interfaces
        if all(f"{interface}.{key}" in counts for key in names.values() for counts in (before, after))
    }


def count_subflows(subflows: Iterable[SubflowRow]) -> dict[str, dict[str, int]]:
    """Add up the subflows of each interface: return interface → ``{established, bytes_up, bytes_down}``.

    ``established`` is the number of established subflows. The byte counts are those of all subflows, without
    retransmissions and reinjections.
    """
    counts: dict[str, dict[str, int]] = {}
    for flow in subflows:
        entry = counts.setdefault(flow["interface"], {"established": 0, "bytes_up": 0, "bytes_down": 0})
        entry["established"] += bool(flow["established"])
        entry["bytes_up"] += flow["unique_up"]
        entry["bytes_down"] += flow["unique_down"]
    return counts


@dataclass(frozen=True)
class Instruments:
    """Measuring instruments. The defaults are those of a real run on this host.

    Attributes:
        limit: limits the time of a scenario.
        monotonic: clock for durations, s.
        wall: returns Unix time, s.
        sleep: waits for a number of seconds.
        load: samples this host's counters.
        load_average: returns this host's load average of the last minute.
        cpu_percent: returns the CPU use of this host since the previous call, percent.
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
