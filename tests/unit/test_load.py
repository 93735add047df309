"""Host load, read from /proc, and the limit above which it disturbs a cell."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from mplab.base.load import HostLoad, Sample, between, judge_load, sample, steal_s
from mplab.base.places import ROOT

TICKS = os.sysconf("SC_CLK_TCK")
QUIET = HostLoad(busy_percent=20.0, free_cpus=1.9, pressure_percent=4.0, steal_percent=0.0)
START = Sample(t=100.0, programs_s=50.0, total_s=200.0, steal_s=1.0, own_s=5.0, pressure_s=7.0)


def write_proc(folder: Path, *, pressure: str | None) -> Path:
    seconds = (10, 1, 4, 80, 1, 0.5, 0.5, 3, 99, 99)  # the last two are included in the first two
    (folder / "stat").write_text("cpu  " + " ".join(str(int(s * TICKS)) for s in seconds) + "\ncpu0 1 2 3\n")
    for pid, name, times in ((7, "a b) c", (2, 1, 3, 4)), (8, "sh", (1, 0, 0, 0))):
        columns = ["S", *["0"] * 10, *(str(value * TICKS) for value in times), "20", "0"]
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "stat").write_text(f"{pid} ({name}) " + " ".join(columns) + "\n")
    (folder / "9").mkdir()  # a process that has just ended
    if pressure is not None:
        (folder / "pressure").mkdir()
        (folder / "pressure" / "cpu").write_text(pressure)
    return folder


def test_the_counters_are_read(tmp_path: Path) -> None:
    text = "some avg10=1.00 avg60=0.50 avg300=0.10 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n"
    counters = sample(proc := write_proc(tmp_path, pressure=text))
    assert steal_s(proc) == counters.steal_s
    assert (counters.programs_s, counters.total_s, counters.steal_s) == (15.0, 100.0, 3.0)
    assert counters.own_s == 11.0
    assert counters.pressure_s == 2.5


def test_a_kernel_without_pressure_is_borne(tmp_path: Path) -> None:
    counters = sample(write_proc(tmp_path, pressure=None))
    assert counters.pressure_s is None
    assert between(counters, replace(counters, t=counters.t + 1, total_s=102.0), cpus=2).pressure_percent is None


def test_this_host_can_be_read() -> None:
    before = sample()
    total = sum(i * i for i in range(400_000))
    after = sample()
    assert total
    assert after.t > before.t
    assert after.own_s >= before.own_s > 0
    assert after.programs_s > before.programs_s


def test_what_others_leave_is_what_is_free() -> None:
    # 10 s of 2 processors: 8 s in programs, 3 of them ours; 1 s stolen; tasks waited for a processor for 2.5 s.
    after = Sample(t=110.0, programs_s=58.0, total_s=220.0, steal_s=2.0, own_s=8.0, pressure_s=9.5)
    assert between(START, after, cpus=2) == HostLoad(
        busy_percent=40.0, free_cpus=1.4, pressure_percent=25.0, steal_percent=5.0
    )


def test_a_quiet_host_is_not_flagged() -> None:
    assert judge_load(QUIET, 1.0) == []
    assert judge_load(replace(QUIET, pressure_percent=None), 1.9) == []


@pytest.mark.parametrize(
    ("load", "words"),
    [
        (replace(QUIET, free_cpus=0.7), "other programs left 0.7 processors, the scenario needs 1"),
        (replace(QUIET, pressure_percent=61.2), "a program waited for a processor 61.2 % of the time"),
        (replace(QUIET, steal_percent=5.1), "5.1 % of the processors' time went to other virtual machines"),
    ],
)
def test_an_overloaded_host_is_flagged(load: HostLoad, words: str) -> None:
    (problem,) = judge_load(load, 1.0)
    assert problem.startswith("the host was overloaded: ")
    assert words in problem


STOPPED = """
import os, sys, time
from mplab.base import load
load._STALL_S = 0.5
with load.Stalls(lambda: "probe") as stalls:
    print("ready", flush=True)
    sys.stdin.readline()
print(*stalls.warnings, sep="\\n")
"""


def test_a_process_that_was_stopped_notices_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    process.send_signal(signal.SIGCONT)
    output, _ = process.communicate("\n", timeout=60)
    assert re.match(r"mplab did not run for \d+\.\d s \(probe\): stopped, or the host was too busy", output)
