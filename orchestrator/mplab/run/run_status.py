"""Read the state of a run from disk, during the run or later."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mplab.base.lock import is_locked
from mplab.format.events import read_events
from mplab.format.runevents import RunEvent
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory


@dataclass(frozen=True)
class RunStatus:
    """The state of a run.

    Attributes:
        path: the run directory.
        progress: counts, outcomes and time left; a damaged cell counts as not run.
        state: as in `progress`, or ``killed``: the run has not ended, and no process executes it.
        damaged: cell id → problem, for cells that were complete and no longer are.
    """

    path: Path
    progress: RunProgress
    state: str
    damaged: Mapping[str, str]

    @property
    def can_resume(self) -> bool:
        """Return whether `mplab.run.resume` would run cells: the run was cut, damaged, killed or interrupted."""
        return bool(self.progress.cut or self.damaged or self.state in {"killed", "interrupted"})


def status(run: Path | str) -> RunStatus:
    """Read the state of a run. Raises InputError if the directory is not a run."""
    directory = RunDirectory.open(Path(run))
    progress = RunProgress.from_events(read_events(directory.events_file, RunEvent))
    problems = directory.damaged_cells()
    damaged = {
        cell: problems.get(cell, f"{directory.cell_dir(cell)}: no such directory")
        for cell in sorted(progress.outcomes.keys() - directory.complete_cells().keys())
    }
    outcomes = {cell: outcome for cell, outcome in progress.outcomes.items() if cell not in damaged}
    killed = progress.state in {"running", "paused"} and not is_locked(directory.lock_name)
    return RunStatus(
        directory.path, replace(progress, outcomes=outcomes), "killed" if killed else progress.state, damaged
    )
