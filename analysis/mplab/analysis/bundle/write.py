"""Make a bundle of a run directory. The run is only read; the same run gives the same bytes."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from mplab.analysis.bundle import checksums
from mplab.analysis.bundle.anonymise import anonymise
from mplab.analysis.bundle.archive import Source, pack
from mplab.analysis.bundle.contents import CRATE, DERIVED_SUMS, ENVIRONMENT, REPORT, SUMS, Contents, contents
from mplab.analysis.bundle.rocrate import BundleFile, Publication, metadata
from mplab.analysis.errors import BundleError, NotAnalysedError
from mplab.analysis.files import replacing
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import Run, read_run

VERSIONS = f"{ENVIRONMENT}/versions.json"
_PRIVATE_KEY = b"PRIVATE KEY-----"
"""End of the first line of every PEM file with a private key."""


@dataclass(frozen=True)
class Options:
    """Choices of content and metadata of a bundle."""

    tables: bool = True
    """Include the tables and scores of the cells; the report is always included."""
    partial: bool = False
    """Accept a run that is not complete."""
    publication: Publication = field(default_factory=Publication)
    locks: Mapping[str, bytes] = field(default_factory=dict)
    """Path in mplab's source tree → content of the files that lock its dependencies."""
    locks_of: str = ""
    """Origin of the files in ``locks``, in words."""
    anonymise: bool = False
    """Replace addresses and names of networks (`mplab.analysis.bundle.anonymise`), and make the report again."""


@dataclass(frozen=True)
class Written:
    """Result of `write_bundle`: path, size and content of the bundle."""

    path: Path
    files: int
    size_bytes: int
    left_out: int
    """Number of derived files that are not in the bundle."""
    payload: bool
    """True: the captures have payload."""
    omitted: int = 0
    """Number of files that the anonymisation left out or cut, because addresses in them cannot be recognised."""


def write_bundle(run_dir: Path, target: Path, options: Options) -> Written:
    """Write a bundle of an analysed run to the new file ``target``.

    Raises:
        NotARunError, NotAnalysedError: ``run_dir`` is no run, or has no report.
        BundleError: the run is not complete, holds a private key or a name that an archive cannot hold, or cannot be
            anonymised; or ``target`` exists, or is inside the run.
        OSError: the bundle cannot be written.
        As `mplab.analysis.pipeline.analyze`, when the run is anonymised.
    """
    run = read_run(run_dir)
    _check(run, target, options)
    if not options.anonymise:
        return _bundle(run, target, options)
    with _anonymised(run, options) as (other, omitted):
        return replace(_bundle(other, target, options), omitted=omitted)


@contextmanager
def _anonymised(run: Run, options: Options) -> Iterator[tuple[Run, int]]:
    """Yield an anonymised and analysed temporary copy of the run, and the number of omitted files."""
    with tempfile.TemporaryDirectory(prefix="mplab-anonymise-") as folder:
        copy = Path(folder) / "run"
        omitted = anonymise(run, copy)
        analyze(copy)
        yield read_run(copy), len(omitted)


def _bundle(run: Run, target: Path, options: Options) -> Written:
    content = contents(run)
    raw = checksums.digests(run.directory, content.raw)
    derived = checksums.digests(run.directory, content.derived)
    _check_secrets(run.directory, content)
    inside = {name: sha for name, sha in derived.items() if options.tables or name.startswith(f"{REPORT}/")}
    files = {**raw, **inside}
    generated = {**_environment(run, options), DERIVED_SUMS: checksums.render(derived)}
    ended_s = _ended_s(run)
    published = datetime.fromtimestamp(ended_s, UTC).isoformat().replace("+00:00", "Z")
    generated[CRATE] = metadata(run, _parts(run.directory, files, generated), options.publication, published)
    generated[SUMS] = checksums.render({**files, **{name: checksums.digest_of(generated[name]) for name in generated}})
    with replacing(target) as archive:
        pack(archive, Source(run.directory, content.folders, files, generated), top=run.manifest.run_id, time_s=ended_s)
    return Written(
        path=target,
        files=len(files) + len(generated),
        size_bytes=target.stat().st_size,
        left_out=len(derived) - len(inside),
        payload=run.manifest.experiment.capture == "payload",
    )


def _check(run: Run, target: Path, options: Options) -> None:
    ended = run.finished and not run.counts["partial"]
    if not ended and not options.partial:
        left = run.counts["partial"] + run.counts["missing"]
        problem = f"{left} of {len(run.cells)} cells are not finished" if left else "the run has not ended"
        raise BundleError(
            f"{run.directory}: {problem}. `mplab resume` finishes it; --partial bundles its finished part"
        )
    if not (run.directory / REPORT / "summary.json").is_file():
        raise NotAnalysedError(f"{run.directory}: no report to be reproduced; `mplab analyze` makes it")
    if target.exists():
        raise BundleError(f"{target}: exists already. Name another file with -o")
    if target.resolve().is_relative_to(run.directory.resolve()):
        raise BundleError(f"{target}: is inside the run, which a bundle must not change. Name another file with -o")


def _check_secrets(root: Path, found: Contents) -> None:
    """Raise BundleError when a raw file holds a private key: mplab writes none, but hooks and apps can."""
    for name in found.raw:
        with (root / name).open("rb") as file:
            before = b""
            while chunk := file.read(checksums.CHUNK):
                if _PRIVATE_KEY in before + chunk:
                    raise BundleError(
                        f"{root / name}: holds a private key, which a bundle would publish. Remove the file first"
                    )
                before = chunk[-len(_PRIVATE_KEY) :]


def _environment(run: Run, options: Options) -> dict[str, bytes]:
    """Return name → content of the bundle's folder ``environment``: lock files, and versions and host of the run."""
    manifest = run.manifest
    recorded = {
        "versions": manifest.versions,
        "git": manifest.git.content(),
        "host": manifest.host.content(),
        "locks": {"of": options.locks_of, "files": sorted(options.locks)},
    }
    files = {f"{ENVIRONMENT}/{name}": content for name, content in options.locks.items()}
    return {**files, VERSIONS: (json.dumps(recorded, indent=1, ensure_ascii=False) + "\n").encode()}


def _parts(root: Path, files: Mapping[str, str], made: Mapping[str, bytes]) -> list[BundleFile]:
    parts = [BundleFile(name, (root / name).stat().st_size, sha) for name, sha in files.items()]
    parts += [BundleFile(name, len(content), checksums.digest_of(content)) for name, content in made.items()]
    return sorted(parts, key=lambda part: part.name)


def _ended_s(run: Run) -> int:
    """Return the time of a run's last event, Unix seconds; without events the time of its start, or 0."""
    times = [event.t for event in run.typed_events]
    if times:
        return int(max(times))
    try:
        return int(datetime.fromisoformat(run.manifest.started).timestamp())
    except (ValueError, OverflowError, OSError):
        return 0
