"""Run one try at a job as a child process: start the `mplab` command, watch its run, end it in an orderly way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from mplab.base.errors import HAS_PLACE
from mplab.base.kernel import die_with_parent
from mplab.format.campaign import CellCounts, Job
from mplab.format.events import read_events
from mplab.format.runevents import ContinueAsked, PauseAsked, RunEvent
from mplab.run.control import request
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory

_PATIENCE_S = 180.0
"""Time, in seconds, that a command has after each signal before the next one."""


MPLAB = (sys.executable, "-m", "mplab")


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Worker:
    """A running ``mplab`` command. If this process dies, for any reason, the command receives SIGTERM.

    Args:
        arguments: arguments of ``mplab``.
        log: file that receives the command's output.
        program: command line of ``mplab``, which precedes the arguments.
    """

    def __init__(self, arguments: Sequence[str], log: Path, program: Sequence[str] = MPLAB) -> None:
        self.log = log
        self._stops: list[float] = []
        parent = os.getpid()
        with log.open("ab") as file:
            # Its own process group: Ctrl-C reaches it only through this process, once.
            self._process = subprocess.Popen(
                [*program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                process_group=0,
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509 - prctl only
            )

    @property
    def pid(self) -> int:
        """Return the process id of the command."""
        return self._process.pid

    @property
    def stopping(self) -> bool:
        """Return whether the command was sent a signal to end."""
        return bool(self._stops)

    def poll(self) -> int | None:
        """Return the command's exit code, negative after a signal; None while the command runs.

        If `stop` was called, and the command still runs `_PATIENCE_S` after the last signal, send a stronger signal.
        """
        code = self._process.poll()
        if code is None and self._stops and time.monotonic() - self._stops[-1] > _PATIENCE_S:
            self._signal()
        return code

    def stop(self) -> None:
        """Send the command a signal to end. Later calls of `poll` send stronger signals while the command runs."""
        if not self._stops:
            self._signal()

    def cpu_s(self) -> float:
        """Return the CPU time of the command and its children, seconds."""
        total = 0.0
        try:
            process = psutil.Process(self.pid)
            family = [process, *process.children(recursive=True)]
        except psutil.Error:
            return total
        for member in family:
            try:
                times = member.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
        return total

    def said(self) -> str:
        """Return the last error message in the command's output, one line; "": there is none."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [
            line.removeprefix("mplab:").strip() for line in lines if line.startswith("mplab:") or HAS_PLACE.match(line)
        ]
        return errors[-1] if errors else ""

    def _signal(self) -> None:
        number = _SIGNALS[min(len(self._stops), len(_SIGNALS) - 1)]
        self._stops.append(time.monotonic())
        self._process.send_signal(number)


class RunningTry:
    """A try at a job that is running.

    Args:
        job: the job.
        directory: directory of the try's run, which need not exist yet.
        worker: process of the try, an ``mplab`` command.
        before: outcomes of the run's cells when the try began.
    """

    def __init__(self, job: Job, directory: RunDirectory, worker: Worker, before: CellCounts) -> None:
        self.job = job
        self.worker = worker
        self.before = before
        self.stalled = False
        """True if the try was ended because it showed no sign of life."""
        self._directory = directory
        self._alive = time.monotonic()
        self._sign: object = None
        self._waits = False
        self._begun_at = _size(directory.events_file)

    @property
    def run(self) -> str:
        """Return the name of the try's run directory."""
        return self._directory.path.name

    def progress(self) -> RunProgress | None:
        """Return the progress of the try's run; None: there is no run yet."""
        return progress_of(self._directory)

    def request(self, *, wait: bool) -> None:
        """Ask the run to pause (`wait` is True) or to continue; do nothing if the last request was the same.

        No request is sent before the run has logged an event in this try: a resumed run ignores earlier requests.
        """
        if wait != self._waits and _size(self._directory.events_file) > self._begun_at:
            self._waits = wait
            request(self._directory.events_file, PauseAsked() if wait else ContinueAsked())

    def end_when_dead(self, stall_s: float) -> None:
        """End the try if it has shown no sign of life for `stall_s` seconds.

        Signs of life are a new event, the state ``paused`` and, while no cell is being measured, more CPU time.
        """
        now = time.monotonic()
        sign = self._look(closely=now - self._alive > stall_s / 2)
        if sign != self._sign:
            self._sign, self._alive = sign, now
        elif now - self._alive > stall_s and not self.worker.stopping:
            self.stalled = True
            self.worker.stop()

    def _look(self, *, closely: bool) -> object:
        grown = _size(self._directory.events_file)
        if not closely:
            return self._sign if isinstance(self._sign, tuple) and self._sign[0] == grown else (grown, 0.0)
        progress = self.progress()
        if progress is not None and progress.state == "paused":
            return grown, time.monotonic()
        return grown, self.worker.cpu_s() if progress is None or progress.current_cell is None else 0.0


def progress_of(directory: RunDirectory) -> RunProgress | None:
    """Return the progress of a run from its events; None: the run has not started."""
    if not directory.manifest_file.is_file() or not directory.events_file.is_file():
        return None
    return RunProgress.from_events(read_events(directory.events_file, RunEvent))


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
