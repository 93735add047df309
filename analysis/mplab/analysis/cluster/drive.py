"""Submit the analysis of runs to a cluster: first the list of a run's cells, then each cell, then the report."""

import queue
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from dask.typing import Key
from distributed import Client, KilledWorker
from distributed.client import Future

from mplab.analysis.cluster import work
from mplab.analysis.cluster.connect import check_same
from mplab.analysis.cluster.store import Store
from mplab.analysis.cluster.work import AnalysedRun, AnalysisJob, Survey
from mplab.analysis.errors import ClusterError, StoreError
from mplab.analysis.pipeline import CellResult

RETRIES = 2
"""Number of retries of a task that raised; tasks lost with their workers are counted separately (Dask: three)."""

RUNS_AT_ONCE = 4
"""Number of runs in progress per worker: enough that no worker idles while a report is made."""

PATIENCE_S = 60.0
"""Maximum time without workers, s, after which the analysis fails."""
LOOK_S = 2.0
RESULT_S = 60.0


@dataclass(frozen=True)
class Spread:
    """Progress of an analysis on the cluster: numbers of runs, cells and workers."""

    runs: int
    runs_done: int
    cells: int
    """Number of cells in the runs whose list of cells is known; it grows during the analysis."""
    cells_done: int
    workers: int


Listener = Callable[[Spread], None]

_Result: TypeAlias = Survey | CellResult | AnalysedRun | str
"""Results of the functions of `mplab.analysis.cluster.work`."""
_Future: TypeAlias = Future[_Result]


@dataclass
class _Begun:
    """A run that is being analysed."""

    job: AnalysisJob
    place: int
    """Index in the list of runs; runs with a lower index have priority."""
    cells: list[_Future] = field(default_factory=list)


class Drive:
    """An analysis of many runs on a cluster.

    Args:
        client: client of the cluster.
        runs: store and name of each run.
        tell: called with the progress after each step.
    """

    def __init__(self, client: Client, runs: Sequence[tuple[Store, str]], *, tell: Listener | None = None) -> None:
        self._client = client
        self._runs = runs
        self._tell: Listener = tell or (lambda _: None)
        self._came: queue.SimpleQueue[_Future] = queue.SimpleQueue()
        self._waiting: dict[Key, tuple[_Begun, str]] = {}
        """Key of an unfinished future → its run, and its stage: ``survey``, ``cell`` or ``rest``."""
        self._futures: dict[Key, _Future] = {}
        self._mark = secrets.token_hex(4)
        self._address = str(client.scheduler_info(n_workers=0)["address"])
        self._workers = 0
        self._looked_s = self._seen_s = time.monotonic()
        self._cells = self._cells_done = self._runs_done = 0

    def results(self) -> Iterator[AnalysedRun]:
        """Yield the result of each run when it completes; a run that cannot be analysed does not stop the others.

        Raises:
            ClusterError: the cluster has other software versions than this process, is lost, or has had no workers for
                `PATIENCE_S`.
        """
        code = check_same(self._client)
        ahead = iter(enumerate(self._runs))
        self._look()
        begun = 0
        try:
            while True:
                while begun < max(1, self._workers) * RUNS_AT_ONCE and (following := next(ahead, None)):
                    index, (store, run) = following
                    self._survey(_Begun(AnalysisJob(store, run, code), index))
                    begun += 1
                if not begun:
                    return
                result = self._advance()
                if result is not None:
                    begun -= 1
                    self._runs_done += 1
                    yield result
                self._say()
        finally:
            with suppress(Exception):  # the scheduler may be gone
                self._client.cancel(list(self._futures.values()), force=True)

    def _advance(self) -> AnalysedRun | None:
        """Process the next completed task. Return the result of its run if the run is now complete, otherwise None.

        Raises:
            ClusterError: the cluster is lost, or the task's worker has other software versions than this process.
        """
        future = self._next()
        if future is None:
            return None
        begun, stage = self._waiting.pop(future.key)
        if stage == "cell":  # the stage "rest" gets the result, or the error, as an argument
            self._cells_done += 1
            return None
        error = self._error(future, begun)
        try:
            result = None if error else future.result(timeout=RESULT_S)
        except (TimeoutError, CancelledError):  # lost with its worker just now
            self._wait_for(future, begun, stage)
            return None
        self._futures.pop(future.key)
        if isinstance(result, Survey) and not result.error:
            self._begin(begun, result.cells)
            return None
        for cell in begun.cells:
            self._futures.pop(cell.key)
            self._cells_done += self._waiting.pop(cell.key, None) is not None
        if isinstance(result, AnalysedRun):
            return result
        problem = result.error if isinstance(result, Survey) else error or ""
        return AnalysedRun(begun.job.run, begun.job.where, error=problem)

    def _next(self) -> _Future | None:
        """Return the next completed task, or None if no task completes within `LOOK_S`.

        Also None after the loss of a task with its worker; Dask runs such a task again.
        """
        if time.monotonic() - self._looked_s > LOOK_S:
            self._look()
        try:
            future = self._came.get(timeout=LOOK_S)
        except queue.Empty:
            return None
        if future.key not in self._waiting:
            return None
        if future.status in {"finished", "error", "cancelled"}:
            return future
        future.add_done_callback(self._came.put)  # lost with its worker; Dask runs it again
        return None

    def _survey(self, begun: _Begun) -> None:
        self._submit(begun, "survey", begun.job.run, work.survey, begun.job)

    def _begin(self, begun: _Begun, cells: Sequence[str]) -> None:
        self._cells += len(cells)
        for name in cells:
            begun.cells.append(self._submit(begun, "cell", f"{begun.job.run}-{name}", work.cell, begun.job, name))
        self._submit(begun, "rest", begun.job.run, work.rest, begun.job, begun.cells)

    def _submit(
        self, begun: _Begun, stage: str, name: str, function: Callable[..., _Result], *arguments: object
    ) -> _Future:
        future = self._client.submit(
            function,
            *arguments,
            key=f"{stage}-{self._mark}-{begun.place}-{name}",
            pure=False,
            retries=RETRIES,
            priority=-begun.place,
        )
        self._futures[future.key] = future
        self._wait_for(future, begun, stage)
        return future

    def _wait_for(self, future: _Future, begun: _Begun, stage: str) -> None:
        self._waiting[future.key] = (begun, stage)
        future.add_done_callback(self._came.put)

    def _error(self, future: _Future, begun: _Begun) -> str | None:
        """Return why the task failed; None if it succeeded.

        Raises:
            ClusterError: the cluster is lost, or the worker of the task has other software versions than this process.
        """
        if future.status == "cancelled":
            raise self._gone()
        error = future.exception()
        if isinstance(error, ClusterError):
            raise error
        if error is None:
            return None
        if isinstance(error, KilledWorker):
            died = f"{begun.job.where}: the workers with this task ended, one after the other"
            return f"{died}, perhaps for lack of memory. The last one: {error.last_worker.address}, task {error.task}"
        return str(error) if isinstance(error, StoreError) else f"{begun.job.where}: {type(error).__name__}: {error}"

    def _look(self) -> None:
        """Update the number of the cluster's workers.

        Raises:
            ClusterError: the scheduler is lost, or there have been no workers for `PATIENCE_S`.
        """
        if self._client.status != "running" or self._client.scheduler is None:
            raise self._gone()
        try:
            # `scheduler_info` would return an outdated answer without workers when the scheduler does not answer.
            known = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        except OSError as error:
            raise self._gone() from error
        self._workers = len(known)
        self._looked_s = time.monotonic()
        if known:
            self._seen_s = self._looked_s
        elif self._looked_s - self._seen_s > PATIENCE_S:
            raise ClusterError(f"{self._address}: no workers for {PATIENCE_S:.0f} s. Finished results are in the runs")

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"{self._address}: the scheduler is lost. Finished results are in the runs; start the analysis again"
        )

    def _say(self) -> None:
        self._tell(Spread(len(self._runs), self._runs_done, self._cells, self._cells_done, self._workers))
