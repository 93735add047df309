"""Follow a running try at a job: its process, its run, its signs of life."""

import time
from pathlib import Path

from mplab.campaign.worker import Worker
from mplab.format.campaign import CellCounts, Job
from mplab.format.events import read_events
from mplab.format.runevents import ContinueAsked, PauseAsked, RunEvent
from mplab.run.orders import order
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory


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
        """The try was ended because it showed no sign of life."""
        self._directory = directory
        self._alive = time.monotonic()
        self._sign: object = None
        self._waits = False
        self._begun_at = _size(directory.events_file)

    @property
    def run(self) -> str:
        """Return the name of the run directory."""
        return self._directory.path.name

    def progress(self) -> RunProgress | None:
        """Return the progress of its run; None: there is no run yet."""
        return progress_of(self._directory)

    def order(self, *, wait: bool) -> None:
        """Order the run to pause or to continue; an order is sent only if `wait` has changed.

        No order is sent before the run has logged an event in this try, because a resumed run ignores earlier orders.
        """
        if wait != self._waits and _size(self._directory.events_file) > self._begun_at:
            self._waits = wait
            order(self._directory.events_file, PauseAsked() if wait else ContinueAsked())

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
    """Return the progress of a run; None: it has not started."""
    if not directory.manifest_file.is_file() or not directory.events_file.is_file():
        return None
    return RunProgress.from_events(read_events(directory.events_file, RunEvent))


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0
