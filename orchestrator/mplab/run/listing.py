"""List the runs of a folder with their state, from their manifests and events; cells are not read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mplab.base.errors import InputError
from mplab.format.events import read_events
from mplab.format.runevents import RunEvent
from mplab.run.progress import RunProgress, state_of
from mplab.run.run_directory import RunDirectory


@dataclass(frozen=True)
class ListedRun:
    """One run of a folder.

    Attributes:
        path: the run directory.
        run_id: name of the run.
        experiment: name of the experiment; "" if the run cannot be read.
        title: title of the experiment.
        started: start of the run, ISO 8601, UTC; "" if it did not start.
        ok: number of cells that are ok.
        planned: number of planned cells.
        duration_s: time from the start to the last event, in seconds; None: it did not start.
        state: state of the run, as `mplab.run.progress.RunStatus` has it; ``unreadable``: see `problem`.
        problem: why the run cannot be read.
    """

    path: Path
    run_id: str
    experiment: str = ""
    title: str = ""
    started: str = ""
    ok: int = 0
    planned: int = 0
    duration_s: float | None = None
    state: str = "unreadable"
    problem: str = ""

    @property
    def finished(self) -> bool:
        """Return whether the run has ended by itself."""
        return self.state == "finished"


def list_runs(folder: Path) -> list[ListedRun]:
    """Return the runs of a folder, the newest first; runs that cannot be read come last.

    Raises:
        InputError: there is no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder. 'mplab run FILE' makes one, --runs names another folder")
    runs = sorted(_read(folder), key=lambda run: run.run_id, reverse=True)
    return sorted(runs, key=lambda run: run.started, reverse=True)


def _read(folder: Path) -> Iterator[ListedRun]:
    for manifest in folder.glob("*/manifest.json"):
        directory = RunDirectory(manifest.parent)
        try:
            yield _listed(directory)
        except InputError as error:
            yield ListedRun(directory.path, directory.run_id, problem=str(error))


def _listed(directory: RunDirectory) -> ListedRun:
    manifest = directory.read_manifest()
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    began, ended = progress.started, progress.updated
    return ListedRun(
        directory.path,
        directory.run_id,
        experiment=manifest.experiment.name,
        title=manifest.experiment.title,
        started=manifest.started,
        ok=progress.ok,
        planned=progress.total,
        duration_s=ended - began if began is not None and ended is not None else None,
        state=state_of(progress, directory.path),
    )
