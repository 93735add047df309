"""Read and write the run directory (docs/design.md)."""

import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from mplab.base.errors import InputError, MplabError
from mplab.base.files import explained, sync, sync_tree, write_new
from mplab.format.cell import AttemptRecord, CellRecord
from mplab.format.manifest import Manifest
from mplab.format.record import read_record, write_record
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.resolve import Catalog, load_experiment
from mplab.userfiles.labs.labuse import VIRTUAL, LabUse, use_lab

RUNS = Path("runs")
"""Folder of runs, unless another one is named."""

_PARTIAL = ".partial"
_ATTEMPTS = "attempts"
_CELL_ID = "[a-z0-9-]+"


class RunDirectory:
    """The directory of one run. A cell's directory has its final name only when it is complete and on disk."""

    def __init__(self, path: Path) -> None:
        """Set the paths of the files in the run directory `path`. Nothing is read or written."""
        self.path = path
        self.experiment_file = path / "experiment.yaml"
        """The experiment file, an unchanged copy."""
        self.kept_dir = path / "experiment"
        """Folder of the experiment's other source files (`mplab.userfiles.experiments.layers.kept_files`), if any."""
        self.lab_file = path / "lab.yaml"
        """The lab file, an unchanged copy; missing if the run uses the default virtual lab."""
        self.manifest_file = path / "manifest.json"
        """Versions, plan and resolved experiment."""
        self.events_file = path / "events.jsonl"
        self.junit_file = path / "junit.xml"
        """Outcomes for continuous integration."""
        self.cells_dir = path / "cells"
        """Folder of the cells, one directory each."""

    @classmethod
    def create(
        cls,
        root: Path,
        name: str,
        experiment_source: bytes,
        lab_source: bytes = b"",
        kept: Mapping[str, bytes] | None = None,
        *,
        run_id: str = "",
    ) -> "RunDirectory":
        """Make ``<root>/<UTC>-<name>-<id6>`` with the experiment file and the lab file, if there is one, byte for byte.

        Args:
            root: folder of runs.
            name: name of the experiment.
            experiment_source: content of the experiment file.
            lab_source: content of the lab file; empty: none.
            kept: other source files of the experiment: path in `kept_dir` → content.
            run_id: name of the directory; "": see `new_run_id`.

        Raises:
            MplabError: the directory cannot be made ("disk full: …").
        """
        path = root / (run_id or new_run_id(name))
        with explained(path):
            root.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.mkdir(mode=0o755)
            (path / "cells").mkdir(mode=0o755)
        run = cls(path)
        write_new(run.experiment_file, experiment_source)
        if lab_source:
            write_new(run.lab_file, lab_source)
        for file, source in (kept or {}).items():
            with explained(path):
                (run.kept_dir / file).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            write_new(run.kept_dir / file, source)
        return run

    @classmethod
    def open(cls, path: Path) -> "RunDirectory":
        """Open an existing run directory. Raises InputError if `path` is not one."""
        run = cls(path)
        if not run.manifest_file.is_file():
            raise InputError(f"{path}: not a run directory: {run.why_none()}")
        return run

    def why_none(self) -> str:
        """Return why this directory is not a usable run directory, and what to do."""
        if not self.path.is_dir():
            return "no such directory"
        if self.cells_dir.is_dir() and self.events_file.is_file():
            return (
                "its manifest.json is lost: take it from a copy or bundle of the run, or run its experiment.yaml again"
            )
        return "no manifest.json in it"

    @property
    def run_id(self) -> str:
        """Return the name of the directory."""
        return self.path.resolve().name

    @property
    def lock_name(self) -> str:
        """Return the name of the lock that a process holds while it writes to this run (`mplab.base.lock`)."""
        return lock_name_of(self.path)

    def load_experiment(
        self, catalog: Catalog, *, lab: LabUse | None = None, given: Mapping[str, object] | None = None
    ) -> Experiment:
        """Read the experiment of the run from its directory only.

        Args:
            catalog: finds the transports, scenarios and links that the experiment names.
            lab: another lab to run in; None: the run's lab.
            given: values of the experiment's variables, in addition to those of the run.

        Raises:
            InputError: a file is missing or wrong.
        """
        use = lab if lab is not None else self.lab_use()
        return load_experiment(self.experiment_file, catalog=catalog, lab=use, given=given, kept=self.kept_dir)

    def lab_use(self) -> LabUse:
        """Return the lab file of the run, and the phone in it that the run uses. Raises InputError."""
        if not self.lab_file.is_file():
            return VIRTUAL
        return use_lab(self.lab_file, self.read_manifest().lab.phone)

    def write_manifest(self, manifest: Manifest) -> None:
        """Write ``manifest.json``, which must not exist yet. Raises MplabError."""
        write_record(self.manifest_file, manifest)

    def read_manifest(self) -> Manifest:
        """Read manifest.json. Raises InputError."""
        return read_record(self.manifest_file, Manifest)

    def cell_dir(self, cell_id: str) -> Path:
        """Return the directory of a complete cell. Raises ValueError if `cell_id` is not a cell id."""
        return self.cells_dir / _checked(cell_id)

    def partial_dir(self, cell_id: str) -> Path:
        """Return the directory of an unfinished cell. Raises ValueError if `cell_id` is not a cell id."""
        return self.cells_dir / f"{_checked(cell_id)}{_PARTIAL}"

    def begin_attempt(self, cell_id: str) -> tuple[Path, int]:
        """Make a directory for the next attempt at a cell; return its path and the attempt's number (1…).

        If an earlier attempt failed or was killed, its files are moved to ``attempts/<number>/`` in this directory.

        Raises:
            MplabError: the cell is already complete (see `reopen_cell`), or "disk full: …".
        """
        if self.cell_dir(cell_id).exists():
            raise MplabError(f"{self.cell_dir(cell_id)}: the cell is complete already")
        partial = self.partial_dir(cell_id)
        with explained(partial):
            partial.mkdir(mode=0o755, exist_ok=True)
            attempt = _last_attempt(partial) + 1
            left = [path for path in sorted(partial.iterdir()) if path.name != _ATTEMPTS]
            if left:
                earlier = partial / _ATTEMPTS / str(attempt)
                earlier.mkdir(mode=0o755, parents=True)
                for path in left:
                    path.rename(earlier / path.name)
                attempt += 1
        return partial, attempt

    def finish_cell(self, record: CellRecord) -> Path:
        """Write cell.json, sync the whole cell to disk and give it its final name. Return its directory.

        Raises:
            MplabError: the cell has no attempt or is already complete, or "disk full: …".
        """
        partial, complete = self.partial_dir(record.id), self.cell_dir(record.id)
        if complete.exists():
            raise MplabError(f"{complete}: the cell is complete already")
        write_record(partial / "cell.json", record)
        with explained(complete):
            sync_tree(partial)
            partial.rename(complete)
            sync(self.cells_dir)
        return complete

    def reopen_cell(self, cell_id: str) -> None:
        """Make a complete cell incomplete. `begin_attempt` then keeps its files as an attempt. Raises MplabError."""
        with explained(self.cell_dir(cell_id)):
            self.cell_dir(cell_id).rename(self.partial_dir(cell_id))

    def earlier_attempts(self, cell_id: str) -> list[AttemptRecord]:
        """Return the records of the earlier attempts at a reopened cell; empty: there are none."""
        partial = self.partial_dir(cell_id)
        left = [partial / "cell.json", *(partial / _ATTEMPTS).glob("*/cell.json")]
        records = []
        for path in left:
            with suppress(InputError):  # missing or damaged: this is why the cell was reopened
                records.append(read_record(path, CellRecord))
        return list(max(records, key=lambda record: record.attempt).attempts) if records else []

    def read_cell(self, cell_id: str) -> CellRecord:
        """Read cell.json of a complete cell. Raises InputError."""
        return read_record(self.cell_dir(cell_id) / "cell.json", CellRecord)

    def complete_cells(self) -> dict[str, CellRecord]:
        """Return cell id → record of every complete cell, in order; damaged cells are left out."""
        return self._read_cells()[0]

    def damaged_cells(self) -> dict[str, str]:
        """Return cell id → problem for cells whose ``cell.json`` is missing or unreadable."""
        return self._read_cells()[1]

    def _read_cells(self) -> tuple[dict[str, CellRecord], dict[str, str]]:
        complete: dict[str, CellRecord] = {}
        damaged: dict[str, str] = {}
        folders = self.cells_dir.iterdir() if self.cells_dir.is_dir() else ()
        for name in sorted(path.name for path in folders if path.is_dir()):
            if re.fullmatch(_CELL_ID, name):
                try:
                    complete[name] = self.read_cell(name)
                except InputError as error:
                    damaged[name] = str(error)
        return complete, damaged


def lock_name_of(path: Path) -> str:
    """Return the name of the lock of the run in the directory `path`."""
    return f"run-{path.resolve().name}"


def new_run_id(name: str) -> str:
    """Return ``<UTC>-<name>-<id6>``: the name of a new directory of a run or campaign."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{name}-{secrets.token_hex(3)}"


def _last_attempt(partial: Path) -> int:
    folder = partial / _ATTEMPTS
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return max(numbers, default=0)


def _checked(cell_id: str) -> str:
    if not re.fullmatch(_CELL_ID, cell_id):
        raise ValueError(f"not a cell id: {cell_id!r}")
    return cell_id
