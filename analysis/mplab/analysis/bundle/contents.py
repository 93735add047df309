"""List the files of a run directory that go into a bundle, and separate raw files from derived ones."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mplab.analysis.errors import BundleError
from mplab.analysis.record.decode import captures
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.record.tables import FOLDER

CRATE, SUMS, DERIVED_SUMS, ENVIRONMENT = "ro-crate-metadata.json", "SHA256SUMS", "derived.sha256", "environment"
"""Files that a bundle adds to the run: metadata, checksums of all files and of the derived ones, locked versions."""

ANONYMISED = "ANONYMISED.md"
"""Describes the anonymisation of a run. Only the anonymised copy of a run has this file."""

REPORT, SCORES = "report", "scores.json"
_OWN = frozenset({CRATE, SUMS, DERIVED_SUMS, ENVIRONMENT})
_UNFINISHED_TABLES = "tables.new"
_DERIVED = re.compile(rf"{REPORT}/.+|cells/[^/]+/(?:{FOLDER}/.+|{re.escape(SCORES)})")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True)
class Contents:
    """Names of the folders and files of a run that go into a bundle; each folder precedes its content.

    The names are relative to the run directory, with ``/`` between their parts.
    """

    folders: tuple[str, ...]
    """All folders except those of derived files. Empty folders are included: they can be cells that were cut off."""
    raw: tuple[str, ...]
    derived: tuple[str, ...]


def contents(run: Run) -> Contents:
    """List the files and folders of a run directory that go into a bundle.

    Files whose name begins with a dot are left out: they are unfinished. Tables of a cell without captures count as
    raw, since they cannot be made again.

    Raises:
        BundleError: the run has a symbolic link, or a name that an archive cannot hold.
    """
    remade = tuple(_remade(run.cells))
    folders, raw, derived = [], [], []
    for path in _walk(run.directory, PurePosixPath()):
        name = path.as_posix()
        again = name == REPORT or any(name == prefix or name.startswith(f"{prefix}/") for prefix in remade)
        if (run.directory / path).is_dir():
            folders += [] if again else [name]
        elif again:
            derived.append(name)
        else:
            raw.append(name)
    return Contents(tuple(folders), tuple(raw), tuple(derived))


def may_be_derived(name: str) -> bool:
    """Return whether a file with this name in a run can be a result of the analysis."""
    return _DERIVED.fullmatch(name) is not None


def _remade(cells: tuple[Cell, ...]) -> Iterator[str]:
    """Yield the names of the files and folders that an analysis of the run makes again."""
    yield REPORT
    for cell in cells:
        if cell.directory is None:
            continue
        if cell.ok:
            yield f"cells/{cell.directory.name}/{SCORES}"
        if cell.record is not None and captures(cell):
            yield f"cells/{cell.directory.name}/{FOLDER}"


def _walk(root: Path, folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """Yield all files and folders below ``folder``, sorted by name, each folder before its content.

    Raises:
        BundleError: one is a link, or has a name that bundles cannot hold.
    """
    for path in sorted((root / folder).iterdir()):
        name = folder / path.name
        if path.name.startswith(".") or path.name == _UNFINISHED_TABLES or name.as_posix() in _OWN:
            continue
        if path.is_symlink():
            raise BundleError(f"{path}: a link; a bundle can hold only files and folders")
        if _FORBIDDEN.search(path.name):
            raise BundleError(f"{path}: a bundle cannot hold a file of this name: {path.name!r}")
        if path.is_dir():
            yield name
            yield from _walk(root, name)
        elif path.is_file():
            yield name
