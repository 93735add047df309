"""The supervisor, without namespaces: it passes on signals, ends with its parent, and leaves nothing behind."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from mplab.base.enter import LabProcess, in_lab, lab_process

GIVES_BACK = """
import signal, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
child = subprocess.Popen(["sleep", "600"], start_new_session=True)
def end(number, _frame):
    child.kill()
    (folder / "given-back").write_text(str(number))
    sys.exit(130)
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, end)
(folder / "pids").write_text(f"{child.pid}")
(folder / "ready").touch()
time.sleep(600)
"""
OUTSIDE = """
import sys, time
from mplab.base.enter import lab_process
with lab_process(sys.argv[1:], private=False):
    time.sleep(600)
"""


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"not within {timeout_s:g} s: {what}")
        time.sleep(0.02)


def command(folder: Path) -> list[str]:
    return [sys.executable, "-c", GIVES_BACK, str(folder)]


def ready(folder: Path) -> int:
    """Return the process id of the command's own child, once it runs."""
    wait_for((folder / "ready").exists, "the command runs")
    return int((folder / "pids").read_text())


def wait(process: LabProcess) -> int | None:
    return process.wait(30)


def test_signals_reach_the_command_once(tmp_path: Path) -> None:
    assert not in_lab()
    with lab_process(command(tmp_path), private=False) as process:
        child = ready(tmp_path)
        process.signal(signal.SIGINT)
        assert wait(process) == 130
    assert (tmp_path / "given-back").read_text() == str(int(signal.SIGINT))
    assert not psutil.pid_exists(child)


def test_a_context_that_ends_ends_the_command(tmp_path: Path) -> None:
    with lab_process(command(tmp_path), private=False):
        ready(tmp_path)
    assert (tmp_path / "given-back").read_text() == str(int(signal.SIGTERM))


def test_a_command_that_is_killed_leaves_no_process(tmp_path: Path) -> None:
    with lab_process(command(tmp_path), private=False) as process:
        child = ready(tmp_path)
        psutil.Process(psutil.Process(child).ppid()).kill()
        assert wait(process) == 128 + signal.SIGKILL
    assert not psutil.pid_exists(child)
    assert not (tmp_path / "given-back").exists(), "nobody was left to do that"


@pytest.mark.parametrize("victim", ["outside", "keeper"])
def test_whoever_else_is_killed_the_command_gives_everything_back(tmp_path: Path, victim: str) -> None:
    argv = [sys.executable, "-c", OUTSIDE, *command(tmp_path)]
    with subprocess.Popen(argv) as outside:
        child = ready(tmp_path)
        keeper = psutil.Process(outside.pid).children()[0]
        (outside if victim == "outside" else keeper).kill()
        wait_for((tmp_path / "given-back").exists, "everything is given back")
        wait_for(lambda: not psutil.pid_exists(child), "nothing runs any more")
        outside.kill()
