"""Shared by integration tests: the `mplab` command and a check of the state that it leaves behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from mplab.base import polling
from mplab.base.enter import IN_LAB_VARIABLE
from mplab.base.errors import LabNotReadyError
from mplab.run.hostside.ready import check_ready

TIMEOUT_S = 240.0
Mplab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session", autouse=True)
def _lab_is_possible() -> None:
    try:
        check_ready(needs_ui=True)
    except LabNotReadyError as error:
        pytest.skip(str(error))


@pytest.fixture
def mplab(tmp_path: Path) -> Mplab:
    """Run ``mplab`` until it exits; its runs are in ``tmp_path / "runs"``."""
    return runner(tmp_path)


def runner(tmp_path: Path, *, timeout_s: float = TIMEOUT_S) -> Mplab:
    """Return a function that runs ``mplab`` until it exits, with a default time limit of `timeout_s`."""

    def run(*arguments: str, timeout_s: float = timeout_s) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            mplab_argv(*arguments),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=environment(tmp_path),
        )

    return run


@pytest.fixture
def start_mplab(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start ``mplab`` and return its process; kill processes that still run at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            mplab_argv(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(tmp_path),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.communicate()


def score(run: Path) -> None:
    """Score the cells of a run that has no report, as `mplab analyze` would."""
    # Slow to import, and each file of tests runs in a separate process.
    from mplab.analysis.pipeline import score_run
    from mplab.analysis.record.run import read_run

    assert [scored.problem for scored in score_run(read_run(run)) if scored.problem] == []


def mplab_argv(*arguments: str) -> list[str]:
    """Return the command line of ``mplab``."""
    return [sys.executable, "-m", "mplab", *arguments]


def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of ``mplab`` in a test."""
    return {**os.environ, "MPLAB_RUNS": str(tmp_path / "runs"), "COLUMNS": "200"}


def lab_processes(lab: str | None = None) -> list[psutil.Process]:
    """Return every process that belongs to the lab `lab`, or to any lab."""
    processes = []
    for process in psutil.process_iter():
        try:
            value = process.environ().get(IN_LAB_VARIABLE)
        except psutil.Error:
            continue
        if value and lab in (None, value):
            processes.append(process)
    return processes


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 60.0) -> None:
    """Wait until `condition` holds; fail the test after `timeout_s`."""
    if not polling.wait_until(condition, timeout_s, interval_s=0.05):
        pytest.fail(f"not within {timeout_s:g} s: {what}")


def _namespaces() -> set[str]:
    """Return all namespaces. `lsns` fails if a process ends while it looks, so call it up to 20 times."""
    for _ in range(20):
        shown = subprocess.run(["lsns", "--noheadings", "--output", "NS,TYPE"], capture_output=True, text=True)  # noqa: PLW1510
        if shown.returncode == 0:
            return set(shown.stdout.split("\n"))
    pytest.fail(f"lsns: {shown.stderr}")


class Traces:
    """A snapshot of the host's namespaces, interfaces and mounts, which a lab could leave behind."""

    def __init__(self) -> None:
        self.namespaces = _namespaces()
        links = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True, check=True).stdout
        self.interfaces = {line.split()[0] for line in links.splitlines()}
        self.mounts = Path("/proc/self/mounts").read_text()

    def left_since(self, before: "Traces") -> list[str]:
        """Return a line for each difference from an earlier snapshot."""
        left = [f"namespace {name}" for name in self.namespaces - before.namespaces]
        left += [f"interface {name}" for name in self.interfaces - before.interfaces]
        left += ["mounts changed"] if self.mounts != before.mounts else []
        return left
