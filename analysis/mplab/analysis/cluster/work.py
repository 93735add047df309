"""What a worker does: one stage of one run, in a folder of its own that is gone when it has ended.

What is wrong with a run is a part of the result, since another try would find the same. What may be better the next
time (a store that does not answer, a full disk) is an exception.
"""

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from distributed import get_worker

from mplab.analysis.cluster.publish import publish
from mplab.analysis.cluster.same import differences, fingerprint
from mplab.analysis.cluster.store import MANIFEST, Entry, Store
from mplab.analysis.errors import AnalysisError, ClusterError, NotARunError
from mplab.analysis.pipeline import CellResult, analyze_cell, analyze_rest
from mplab.analysis.record.decode import LOOPBACK_CAPTURE
from mplab.analysis.record.run import read_run
from mplab.analysis.record.tables import FOLDER

REPORT = "report"
CAPTURE = ".pcapng"
_RECORDS = frozenset({MANIFEST, "events.jsonl"})
_UNREAD = frozenset({"attempts", "screenshots", "screenshots-peer"})
"""Folders of a cell that the analysis does not read."""

_one = threading.Lock()
"""Figures and plug-ins change what the whole process has: a worker with several threads does one thing at once."""


@dataclass(frozen=True)
class AnalysisJob:
    """One run to analyse."""

    store: Store
    run: str
    code: Mapping[str, str]
    """What the client would analyse with (`mplab.analysis.cluster.same`)."""

    @property
    def where(self) -> str:
        """What to call the run."""
        return self.store.where(self.run)


@dataclass(frozen=True)
class Survey:
    """The cells of a run that have something to analyse, in its order; or why it cannot be read."""

    cells: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class AnalysedRun:
    """What came of a run: its cells by outcome, what its report lists as problems; or why there is no report."""

    run: str
    where: str
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    error: str = ""


def survey(job: AnalysisJob) -> Survey:
    """Read what is known of a run's cells."""
    with _folder(job) as root:
        entries = [e for e in job.store.listing(job.run) if e.path in _RECORDS or _is_record(e.path)]
        job.store.bring(job.run, entries, root)
        try:
            run = read_run(root)
        except AnalysisError as error:
            return Survey(error=f"{_words(error, job, root)} (as the worker {get_worker().address} sees it)")
    return Survey(tuple(cell.id for cell in run.cells if cell.record is not None))


def cell(job: AnalysisJob, name: str) -> CellResult | str:
    """Make a cell's tables and scores, and put them into the run; what is wrong with all of it, if anything."""
    place = PurePosixPath("cells", name)
    with _folder(job) as root:
        entries = [entry for entry in job.store.listing(job.run, str(place)) if not _is_unread(entry)]
        captured = any(_is_decoded(entry, place) for entry in entries)
        kept = [e for e in entries if not (captured and PurePosixPath(e.path).is_relative_to(place / FOLDER))]
        job.store.bring(job.run, [Entry(MANIFEST), *kept], root)
        run = read_run(root)
        found = next(one for one in run.cells if one.id == name)
        try:
            result = analyze_cell(run, found)
        except AnalysisError as error:
            return _words(error, job, root)
        files = ["scores.json"] if result.scores is not None else []
        publish(job.store, job.run, root, str(place), whole=[FOLDER] if captured else [], files=files)
    return result


def rest(job: AnalysisJob, results: Sequence[CellResult | str]) -> AnalysedRun:
    """Make a run's statistics, figures and report of what `cell` said of its cells, and put the report into the run."""
    if wrong := next((result for result in results if isinstance(result, str)), None):
        return AnalysedRun(job.run, job.where, error=wrong)
    with _folder(job) as root:
        entries = [entry for entry in job.store.listing(job.run) if _is_of_report(entry)]
        job.store.bring(job.run, entries, root)
        try:
            run = read_run(root)
            whole = [result for result in results if isinstance(result, CellResult)]
            problems = analyze_rest(run, whole)
        except AnalysisError as error:
            return AnalysedRun(job.run, job.where, error=_words(error, job, root))
        publish(job.store, job.run, root, REPORT, whole=["figures", "data"], files=["summary.json", "index.html"])
    return AnalysedRun(job.run, job.where, run.counts, tuple(f"{one.cell}: {one.message}" for one in problems))


@contextmanager
def _folder(job: AnalysisJob) -> Iterator[Path]:
    """A run directory of this worker's own, empty.

    Raises:
        ClusterError: this worker would not make what the client would.
    """
    worker = get_worker()
    if other := differences(job.code, fingerprint()):
        raise ClusterError(f"the worker {worker.address} is another mplab: {other}")
    with _one, tempfile.TemporaryDirectory(dir=worker.local_directory, prefix="run-") as folder:
        root = Path(folder, job.run)
        root.mkdir()
        yield root


def _is_record(path: str) -> bool:
    """Whether this is the file by which a cell is known."""
    return PurePosixPath(path).match("cells/*/cell.json")


def _is_decoded(entry: Entry, cell_folder: PurePosixPath) -> bool:
    """Whether mptrace makes tables of it: a capture of one of the phone's own interfaces, loopback excluded."""
    path = PurePosixPath(entry.path)
    is_capture = path.parent == cell_folder and path.match(f"phone-*{CAPTURE}")
    return is_capture and path.name != LOOPBACK_CAPTURE and entry.size > 0


def _is_of_report(entry: Entry) -> bool:
    """Whether statistics, figures and report are made of it, among others."""
    first = PurePosixPath(entry.path).parts[0]
    return first in {*_RECORDS, "cells"} and not entry.path.endswith(CAPTURE) and not _is_unread(entry)


def _is_unread(entry: Entry) -> bool:
    """Whether the analysis does not read it; a hidden file is one that is just being written."""
    parts = PurePosixPath(entry.path).parts
    return parts[-1].startswith(".") or bool(_UNREAD.intersection(parts[2:3]))


def _words(error: AnalysisError, job: AnalysisJob, root: Path) -> str:
    """What went wrong, with the run where it is and not where this worker has worked."""
    if isinstance(error, NotARunError):
        return f"{job.where}: not a run directory: {error.problem}"
    return str(error).replace(str(root), job.where)
