"""Open a bundle: unpack it safely, verify every checksum, and separate raw data from derived files."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mplab.analysis.bundle import checksums
from mplab.analysis.bundle.archive import MAX_BYTES, unpack
from mplab.analysis.bundle.checksums import Broken
from mplab.analysis.bundle.contents import DERIVED_SUMS, SUMS, may_be_derived
from mplab.analysis.errors import BundleError, NotARunError
from mplab.analysis.record.run import Run, read_run

_MOST_NAMED = 20


class DamagedBundleError(BundleError):
    """Files of a bundle do not match its checksums."""

    def __init__(self, archive: Path, broken: Sequence[Broken]) -> None:
        """Make the error from the files that do not match (``broken``, at least one); the message lists them."""
        lines = [f"  {file.name}: {file.damage}" for file in broken[:_MOST_NAMED]]
        lines += [f"  and {len(broken) - _MOST_NAMED} more"] if len(broken) > _MOST_NAMED else []
        super().__init__(f"{archive}: damaged: these files do not match their checksums:\n" + "\n".join(lines))
        self.broken = tuple(broken)


@dataclass(frozen=True)
class Bundle:
    """An unpacked bundle: ``run`` has only the raw data; the folder ``before`` has the bundle's derived files."""

    archive: Path
    run: Run
    before: Path
    derived: dict[str, str]
    """Name → SHA-256 of all derived files of the original run, including those that are not in the bundle."""


def open_bundle(archive: Path, folder: Path, *, max_bytes: int = MAX_BYTES) -> Bundle:
    """Unpack a bundle into ``folder`` (created, or empty) and verify it.

    Raises:
        DamagedBundleError: a file does not match its checksum, is missing, or is not listed.
        BundleError: the archive is no bundle, holds no run, or cannot be unpacked; see
            `mplab.analysis.bundle.archive.unpack`.
    """
    unpacked = folder / "run"
    try:
        unpacked.mkdir(parents=True)
    except OSError as error:
        raise BundleError(f"{folder}: cannot be used to unpack a bundle: {error.strerror}") from error
    root = unpack(archive, unpacked, max_bytes=max_bytes)
    try:
        sums = checksums.parse(root / SUMS)
        derived = checksums.parse(root / DERIVED_SUMS)
    except BundleError as error:
        raise BundleError(f"{archive}: {error}") from error
    there = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    if broken := checksums.broken(root, (name for name in there if name != SUMS), sums):
        raise DamagedBundleError(archive, broken)
    if odd := sorted(name for name in derived if not may_be_derived(name)):
        raise BundleError(f"{archive}: {DERIVED_SUMS}: {odd[0]} is not a file of the analysis")
    try:
        run = read_run(root)
    except NotARunError as error:
        raise BundleError(f"{archive}: it holds no run: {error.problem}") from error
    before = folder / "before"
    _move(root, before, derived.keys() & set(there))
    return Bundle(archive, run, before, derived)


def _move(root: Path, target: Path, names: Iterable[str]) -> None:
    target.mkdir()
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).rename(target / name)
