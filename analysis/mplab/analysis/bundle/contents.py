"""What of a run directory goes into a bundle, and what of that the analysis can make again."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mplab.analysis.errors import BundleError
from mplab.analysis.record.decode import captures
from mplab.analysis.record.run import Cell, Run
from mplab.analysis.record.tables import FOLDER

CRATE, SUMS, DERIVED_SUMS, ENVIRONMENT = "ro-crate-metadata.json", "SHA256SUMS", "derived.sha256", "environment"
"""What a bundle has beside the run: metadata, checksums of its files and of what analysis made, locked versions."""

ANONYMISED = "ANONYMISED.md"
"""In a run whose addresses are others: what was done to it. No run is made with such a file."""

REPORT, SCORES = "report", "scores.json"
_OWN = frozenset({CRATE, SUMS, DERIVED_SUMS, ENVIRONMENT})
_UNFINISHED_TABLES = "tables.new"
_DERIVED = re.compile(rf"{REPORT}/.+|cells/[^/]+/(?:{FOLDER}/.+|{re.escape(SCORES)})")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")


@dataclass(frozen=True)
class Contents:
    """Names of files relative to the run directory, in order, with ``/`` between their parts."""

    folders: tuple[str, ...]
    """All folders but those of what is derived: an empty one says something, too (a cell that was cut off)."""
    raw: tuple[str, ...]
    derived: tuple[str, ...]


def contents(run: Run) -> Contents:
    """What is in the directory of a run. Files whose name begins with a dot are left out: nobody finished them.

    Tables of a cell without captures are not derived, since they cannot be made again.

    Raises:
        BundleError: there is a link, or a name that an archive cannot hold.
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
    """Whether the analysis makes files of such a name."""
    return _DERIVED.fullmatch(name) is not None


def _remade(cells: tuple[Cell, ...]) -> Iterator[str]:
    """Prefixes of the names of what is made again."""
    yield REPORT
    for cell in cells:
        if cell.directory is None:
            continue
        if cell.ok:
            yield f"cells/{cell.directory.name}/{SCORES}"
        if cell.record is not None and captures(cell):
            yield f"cells/{cell.directory.name}/{FOLDER}"


def _walk(root: Path, folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """Everything below, each folder before what is in it, sorted by name."""
    for path in sorted((root / folder).iterdir()):
        name = folder / path.name
        if path.name.startswith(".") or path.name == _UNFINISHED_TABLES or name.as_posix() in _OWN:
            continue
        if path.is_symlink():
            raise BundleError(f"{path}: a link: a bundle holds files and folders alone")
        if _FORBIDDEN.search(path.name):
            raise BundleError(f"{path}: a bundle holds no file with such a name: {path.name!r}")
        if path.is_dir():
            yield name
            yield from _walk(root, name)
        elif path.is_file():
            yield name
