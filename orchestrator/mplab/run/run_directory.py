"""The run directory: where everything of one run lies (docs/design.md)."""

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
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import VIRTUAL, LabUse, use_lab
from mplab.userfiles.resolve import Catalog, load_experiment

RUNS = Path("runs")
"""Folder of runs, unless another one is named."""

_PARTIAL = ".partial"
_ATTEMPTS = "attempts"
_CELL_ID = "[a-z0-9-]+"


class RunDirectory:
    """One run's directory. A cell's directory bears its own name only when it is complete and on disk."""

    def __init__(self, path: Path) -> None:
        """`path` is the directory itself; use `create` or `open`."""
        self.path = path

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
        """Make ``<root>/<UTC>-<name>-<id6>`` with the experiment file in it, byte for byte; and the lab file, if any.

        Args:
            root: folder of runs.
            name: of the experiment.
            experiment_source: the experiment file.
            lab_source: the lab file.
            kept: what else the experiment was read from: files of `kept_dir`.
            run_id: what it is called; "": see `new_run_id`.

        Raises:
            MplabError: it cannot be made ("disk full: …").
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
        """An existing run directory. Raises InputError when `path` is none."""
        run = cls(path)
        if not run.manifest_file.is_file():
            raise InputError(f"{path}: not a run directory: {run.why_none()}")
        return run

    def why_none(self) -> str:
        """Why this is not a run directory that can be used, and what to do."""
        if not self.path.is_dir():
            return "no such directory"
        if self.cells_dir.is_dir() and self.events_file.is_file():
            return (
                "its manifest.json is lost: take it from a copy or bundle of the run, or run its experiment.yaml again"
            )
        return "no manifest.json in it"

    @property
    def run_id(self) -> str:
        """Its name."""
        return self.path.resolve().name

    @property
    def lock_name(self) -> str:
        """What a process that adds to this run locks (`mplab.base.lock`)."""
        return f"run-{self.run_id}"

    @property
    def experiment_file(self) -> Path:
        """The experiment as asked."""
        return self.path / "experiment.yaml"

    @property
    def kept_dir(self) -> Path:
        """What else the experiment was read from (`mplab.userfiles.layers.kept_files`); may be missing."""
        return self.path / "experiment"

    def load_experiment(
        self, catalog: Catalog, *, lab: LabUse | None = None, given: Mapping[str, object] | None = None
    ) -> Experiment:
        """The experiment of the run, from what is in its directory alone.

        Args:
            catalog: what its names may stand for.
            lab: where it is run; None: where the run is.
            given: further values of its variables.

        Raises:
            InputError: something of it is missing or wrong.
        """
        use = lab if lab is not None else self.lab_use()
        return load_experiment(self.experiment_file, catalog=catalog, lab=use, given=given, kept=self.kept_dir)

    @property
    def lab_file(self) -> Path:
        """The lab file as asked; not there when the run is in the virtual lab as it is."""
        return self.path / "lab.yaml"

    def lab_use(self) -> LabUse:
        """The lab that the run is made in, and its phone. Raises InputError."""
        if not self.lab_file.is_file():
            return VIRTUAL
        return use_lab(self.lab_file, self.read_manifest().lab.phone)

    @property
    def manifest_file(self) -> Path:
        """What was resolved."""
        return self.path / "manifest.json"

    @property
    def events_file(self) -> Path:
        """What happened."""
        return self.path / "events.jsonl"

    @property
    def junit_file(self) -> Path:
        """The outcomes for CI."""
        return self.path / "junit.xml"

    @property
    def cells_dir(self) -> Path:
        """One directory a cell."""
        return self.path / "cells"

    def write_manifest(self, manifest: Manifest) -> None:
        """Write manifest.json, once. Raises MplabError."""
        write_record(self.manifest_file, manifest)

    def read_manifest(self) -> Manifest:
        """What `write_manifest` wrote. Raises InputError."""
        return read_record(self.manifest_file, Manifest)

    def cell_dir(self, cell_id: str) -> Path:
        """Where a complete cell lies."""
        return self.cells_dir / _checked(cell_id)

    def partial_dir(self, cell_id: str) -> Path:
        """Where a cell lies while it is made."""
        return self.cells_dir / f"{_checked(cell_id)}{_PARTIAL}"

    def begin_attempt(self, cell_id: str) -> tuple[Path, int]:
        """An empty directory for the next attempt at a cell, and its number (1…).

        What an earlier attempt has left, failed or killed, is moved whole into ``attempts/<number>/`` in it.

        Raises:
            MplabError: the cell is complete already (see `reopen_cell`), or "disk full: …".
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
        """Write cell.json, put the whole cell on disk and give it its name; its directory.

        Raises:
            MplabError: no attempt was begun, the cell is complete already, or "disk full: …".
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
        """Take a complete cell back; `begin_attempt` then keeps it as an attempt. Raises MplabError."""
        with explained(self.cell_dir(cell_id)):
            self.cell_dir(cell_id).rename(self.partial_dir(cell_id))

    def earlier_attempts(self, cell_id: str) -> list[AttemptRecord]:
        """Return the records of the attempts at a reopened cell."""
        partial = self.partial_dir(cell_id)
        left = [partial / "cell.json", *(partial / _ATTEMPTS).glob("*/cell.json")]
        records = []
        for path in left:
            with suppress(InputError):  # missing or damaged: the cell was reopened for that
                records.append(read_record(path, CellRecord))
        return list(max(records, key=lambda record: record.attempt).attempts) if records else []

    def read_cell(self, cell_id: str) -> CellRecord:
        """The cell.json of a complete cell. Raises InputError."""
        return read_record(self.cell_dir(cell_id) / "cell.json", CellRecord)

    def complete_cells(self) -> dict[str, CellRecord]:
        """Every complete cell by its id, in order; without those that are damaged."""
        return self._read_cells()[0]

    def damaged_cells(self) -> dict[str, str]:
        """Cells whose cell.json is missing or cannot be read, by their id: why."""
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


def new_run_id(name: str) -> str:
    """``<UTC>-<name>-<id6>``: what a directory of a run, or of a campaign, that begins now is called."""
    return f"{datetime.now(UTC).strftime('%Y%m%dT%H%M%SZ')}-{name}-{secrets.token_hex(3)}"


def _last_attempt(partial: Path) -> int:
    folder = partial / _ATTEMPTS
    numbers = [int(path.name) for path in folder.iterdir() if path.name.isdigit()] if folder.is_dir() else []
    return max(numbers, default=0)


def _checked(cell_id: str) -> str:
    if not re.fullmatch(_CELL_ID, cell_id):
        raise ValueError(f"not a cell id: {cell_id!r}")
    return cell_id
