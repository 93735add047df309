"""Waiting for a condition, and for a program's ready line."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mplab.base.errors import DeviceError
from mplab.base.nodes import NodeProcess
from mplab.base.polling import wait_ready, wait_until

READY = '{"event": "ready", "pid": 1}'


def program(log: Path, *lines: str) -> NodeProcess:
    """Return a program that has appended lines to a log and ended."""
    script = "import sys; print(*sys.argv[1:], sep=chr(10))"
    with log.open("ab") as output:
        process = subprocess.Popen([sys.executable, "-c", script, *lines], stdout=output, start_new_session=True)
    process.wait()
    return NodeProcess(process)


def test_the_line_may_come_after_others(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert wait_ready(program(log, "hello", READY), log, name="x") == {"event": "ready", "pid": 1}


def test_a_program_that_ended_before_is_told_with_its_words(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(DeviceError, match="ended before it was ready") as caught:
        wait_ready(program(log, "no such file"), log, name="x")
    assert "no such file" in str(caught.value)


def test_what_an_earlier_program_said_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program(log, READY)
    before = log.stat().st_size
    with pytest.raises(DeviceError, match="ended before it was ready"):
        wait_ready(program(log, "in use"), log, name="x", since=before)
    assert wait_ready(program(log, READY), log, name="x", since=before)["event"] == "ready"


def test_the_first_true_result_ends_the_wait() -> None:
    results = iter(["", "found", "later"])
    assert wait_until(lambda: next(results), 10.0, interval_s=0.001) == "found"
    assert list(results) == ["later"]


def test_a_late_condition_is_looked_at_after_the_deadline_too() -> None:
    began = time.monotonic()
    assert wait_until(lambda: time.monotonic() > began + 0.02, 0.01, interval_s=0.05)


def test_the_last_false_result_is_returned() -> None:
    results = iter([[], 0, ""])
    assert wait_until(lambda: next(results), -1.0, interval_s=0.01) == []
    assert wait_until(lambda: next(results), -1.0, interval_s=0.01) == 0


def test_an_error_ends_the_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        wait_until(lambda: 1 / 0, 10.0, interval_s=0.01)
