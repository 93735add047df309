"""Analyse one run on a worker: each function here performs one stage in a temporary folder.

An error in the run itself is part of the result, since a retry would find it again. An error that can pass (a store
that does not answer, a full disk) is raised.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from distributed import get_worker

from mplab.analysis.cluster.same import differences, fingerprint
from mplab.analysis.cluster.store import MANIFEST, Entry, Store, publish
from mplab.analysis.errors import AnalysisError, ClusterError, NotARunError
from mplab.analysis.pipeline import CellResult, analyze_cell, analyze_rest
from mplab.analysis.record.decode import LOOPBACK_CAPTURE
from mplab.analysis.record.run import read_run
from mplab.analysis.record.tables import FOLDER

REPORT = "report"
CAPTURE = ".pcapng"
_RECORDS = frozenset({MANIFEST, "events.jsonl"})
_PICTURES = frozenset({"film", "screenshots", "screenshots-peer"})
"""Folders of a cell of which the analysis reads only the names of the files."""

_SHOWN = frozenset({"logs", "har", "network", "scenario.jsonl", "cell.json"})
"""Texts of a cell, and folders of texts, that its page shows."""

_UNREAD = frozenset({"attempts", *_PICTURES})
"""Folders of a cell whose files the analysis does not read."""

_FOLDERS, _FILES = ("figures", "data", "cells", "scenarios"), ("report.css", "summary.json", "index.html")
"""The content of ``report``, in the order in which it is published."""

_one = threading.Lock()
"""Held by the running stage: figures and plug-ins change process-wide state, and a worker can have several threads."""


@dataclass(frozen=True)
class AnalysisJob:
    """A run that a cluster analyses."""

    store: Store
    run: str
    code: Mapping[str, str]
    """Fingerprint of the client (`mplab.analysis.cluster.same`)."""

    @property
    def where(self) -> str:
        """Return the run's path or URL, for messages."""
        return self.store.where(self.run)


@dataclass(frozen=True)
class Survey:
    """Result of `survey`: IDs of the cells that have a record, in the order of the run.

    ``error``: the reason why the run cannot be read, or "".
    """

    cells: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class AnalysedRun:
    """Result of the analysis of a run: number of cells by outcome, and problems that the report lists.

    ``error``: the reason why there is no report, or "".
    """

    run: str
    where: str
    counts: Mapping[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    error: str = ""


def survey(job: AnalysisJob) -> Survey:
    """Read the records of a run, and return the IDs of its cells.

    Raises:
        ClusterError: this worker has other versions than the client.
        StoreError, OSError: the store does not answer, or the disk is full.
    """
    with _folder(job) as root:
        entries = [e for e in job.store.listing(job.run) if e.path in _RECORDS or _is_record(e.path)]
        job.store.bring(job.run, entries, root)
        try:
            run = read_run(root)
        except AnalysisError as error:
            return Survey(error=f"{_words(error, job, root)} (as the worker {get_worker().address} sees it)")
    return Survey(tuple(cell.id for cell in run.cells if cell.record is not None))


def cell(job: AnalysisJob, name: str) -> CellResult | str:
    """Make the tables and scores of the cell ``name``, and copy them into the run.

    Return the result, or the text of an error that prevents the analysis of the run.

    Raises:
        ClusterError: this worker has other versions than the client.
        StoreError, OSError: the store does not answer, or the disk is full.
    """
    directory = PurePosixPath("cells", name)
    with _folder(job) as root:
        entries = [entry for entry in job.store.listing(job.run, str(directory)) if not _is_unread(entry)]
        captured = any(_is_decoded(entry, directory) for entry in entries)
        needed = [e for e in entries if not (captured and PurePosixPath(e.path).is_relative_to(directory / FOLDER))]
        job.store.bring(job.run, [Entry(MANIFEST), *needed], root)
        run = read_run(root)
        own_cell = next(candidate for candidate in run.cells if candidate.id == name)
        try:
            result = analyze_cell(run, own_cell)
        except AnalysisError as error:
            return _words(error, job, root)
        files = ["scores.json"] if result.scores is not None else []
        publish(job.store, job.run, root, str(directory), whole=[FOLDER] if captured else [], files=files)
    return result


def rest(job: AnalysisJob, results: Sequence[CellResult | str]) -> AnalysedRun:
    """Make a run's statistics, figures and report from the results of `cell`, and copy the report into the run.

    Raises:
        ClusterError: this worker has other versions than the client.
        StoreError, OSError: the store does not answer, or the disk is full.
    """
    if wrong := next((result for result in results if isinstance(result, str)), None):
        return AnalysedRun(job.run, job.where, error=wrong)
    with _folder(job) as root:
        stored = job.store.listing(job.run)
        job.store.bring(job.run, [entry for entry in stored if _is_of_report(entry)], root)
        _prepare_pages(root, stored)
        try:
            run = read_run(root)
            cell_results = [result for result in results if isinstance(result, CellResult)]
            problems = analyze_rest(run, cell_results)
        except AnalysisError as error:
            return AnalysedRun(job.run, job.where, error=_words(error, job, root))
        publish(job.store, job.run, root, REPORT, whole=_FOLDERS, files=_FILES)
    return AnalysedRun(
        job.run, job.where, run.counts, tuple(f"{problem.cell}: {problem.message}" for problem in problems)
    )


@contextmanager
def _folder(job: AnalysisJob) -> Iterator[Path]:
    """Yield an empty temporary run directory, which is removed after the block.

    Raises:
        ClusterError: this worker has other versions than the client.
    """
    worker = get_worker()
    if other := differences(job.code, fingerprint()):
        raise ClusterError(f"the worker {worker.address} has other versions than the client: {other}")
    with _one, tempfile.TemporaryDirectory(dir=worker.local_directory, prefix="run-") as folder:
        root = Path(folder, job.run)
        root.mkdir()
        yield root


def _is_record(path: str) -> bool:
    """Return whether the file is the ``cell.json`` of a cell."""
    return PurePosixPath(path).match("cells/*/cell.json")


def _is_decoded(entry: Entry, cell_folder: PurePosixPath) -> bool:
    """Return whether the entry is an uncompressed capture of a phone's interface other than loopback."""
    path = PurePosixPath(entry.path)
    is_capture = path.parent == cell_folder and path.match(f"phone-*{CAPTURE}")
    return is_capture and path.name != LOOPBACK_CAPTURE and entry.size > 0


def _is_of_report(entry: Entry) -> bool:
    """Return whether the stage `rest` needs the entry for statistics, figures and report."""
    first = PurePosixPath(entry.path).parts[0]
    return first in {*_RECORDS, "cells"} and not entry.path.endswith(CAPTURE) and not _is_unread(entry)


def _prepare_pages(root: Path, stored: Sequence[Entry]) -> None:
    """Prepare the files that the pages of cells show.

    Pictures and films become empty files, since pages only link them. Links to texts become copies, since the analysis
    reads no text through a link; links in the run itself stay links.
    """
    for entry in stored:
        parts = PurePosixPath(entry.path).parts
        path = root / entry.path
        if entry.folder or parts[0] != "cells":
            continue
        if _PICTURES.intersection(parts[2:3]):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        elif _SHOWN.intersection(parts[2:3]) and path.is_symlink() and not (source := path.readlink()).is_symlink():
            path.unlink()
            shutil.copyfile(source, path)


def _is_unread(entry: Entry) -> bool:
    """Return whether the analysis ignores the entry; a hidden file is still being written."""
    parts = PurePosixPath(entry.path).parts
    return parts[-1].startswith(".") or bool(_UNREAD.intersection(parts[2:3]))


def _words(error: AnalysisError, job: AnalysisJob, root: Path) -> str:
    """Return the error's text, with the run's path or URL in the store instead of the worker's temporary folder."""
    if isinstance(error, NotARunError):
        return f"{job.where}: not a run directory: {error.problem}"
    return str(error).replace(str(root), job.where)
