"""Compress or remove data of old runs, as the retention rules of a campaign file say; without rules, do nothing.

Exports `Action`, `Result`, `plan_retention`, `apply_retention`, `LOG`; the rules are a
`mplab.format.campaignfile.RetentionFile`.

A run is changed only if its directory has this format and its run id as name, the run has finished, and no process
holds its lock. Every removal is logged before it happens: that of a capture in ``retention.jsonl`` of its run, that of
a run in ``retention.jsonl`` of the folder of runs. A run is first moved into `ASIDE`, then removed. If the process is
killed in between, the next call of `apply_retention` removes the rest.
"""

import gzip
import hashlib
import os
import re
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Literal

from mplab.base.errors import InputError, MplabError
from mplab.base.files import explained, sync
from mplab.base.humanize import space
from mplab.base.lock import resource_lock
from mplab.format.campaignfile import CaptureCompressed, CaptureRemoved, RetentionFile, RunRemoved
from mplab.format.events import EventLog, read_events
from mplab.format.manifest import Manifest
from mplab.format.runevents import RunEvent
from mplab.format.units import format_age_s
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory

Kind = Literal["compress", "captures", "run"]

LOG = "retention.jsonl"
"""Log in a run directory: changes of its captures; in the folder of runs: removed runs."""
ASIDE = ".removed-by-mplab"
"""Folder in the folder of runs that holds a run during its removal. No reader looks for runs in it."""

_RUN = re.compile(r"(?P<stamp>[0-9]{8}T[0-9]{6}Z)-(?P<name>[a-z0-9-]{1,40})-[0-9a-f]{6}")
_CAPTURE = re.compile(r"[^.].*\.pcapng(\.gz)?")
_COMPRESSED = ".gz"
_UNFINISHED = ".new"
_SUMMARY = Path("report", "summary.json")
_TABLES = Path("tables", "connections.parquet")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Action:
    """A change of one run that the retention rules require.

    Attributes:
        kind: ``compress``: compress captures of the run; ``captures``: remove them; ``run``: remove the whole run.
        run: directory of the run.
        rule: the rule that requires the change, as in the campaign file: ``captures: 30 d``.
        size_bytes: current size of the affected files, bytes.
        files: paths of the affected captures, relative to `run`; empty for a whole run.
    """

    kind: Kind
    run: Path
    rule: str
    size_bytes: int
    files: tuple[Path, ...] = ()

    @property
    def text(self) -> str:
        """Return the change as one line of text: ``RUN: remove 24 captures, 1.2 GB (captures: 30 d)``."""
        many = f"{len(self.files)} capture{'s' if len(self.files) != 1 else ''}"
        change = {"compress": f"compress {many}", "captures": f"remove {many}", "run": "remove the whole run"}[
            self.kind
        ]
        return f"{self.run.name}: {change}, {space(self.size_bytes)} ({self.rule})"


@dataclass(frozen=True)
class Result:
    """Outcome of applying an action.

    Attributes:
        action: the action.
        freed_bytes: disk space that the action freed, bytes.
        problem: why the action was not done or not completed; "": there was no problem.
    """

    action: Action
    freed_bytes: int
    problem: str = ""


def plan_retention(runs: Path, rules: RetentionFile, now: float | None = None) -> tuple[Action, ...]:
    """Return the actions that the rules require now, oldest run first. No file is changed.

    Args:
        runs: folder of the runs.
        rules: retention rules.
        now: Unix seconds; default: the current time.
    """
    now = time.time() if now is None else now
    by_experiment: dict[str, list[Path]] = defaultdict(list)
    for path, match in _run_directories(runs):
        by_experiment[match["name"]].append(path)
    actions = []
    for paths in by_experiment.values():
        finished = (path for path in sorted(paths, reverse=True) if _ended(path) is not None)
        for newer, path in enumerate(finished):
            actions += _actions(path, rules, now, protected=newer < rules.keep_last)
    return tuple(sorted(actions, key=lambda action: action.run.name))


def apply_retention(actions: Sequence[Action], runs: Path, *, lock_directory: Path | None = None) -> tuple[Result, ...]:
    """Apply actions, also after one has failed, and complete earlier removals that were interrupted.

    Return the outcome of each action.

    Args:
        actions: actions from `plan_retention`.
        runs: folder of the runs.
        lock_directory: folder of the runs' locks; default: `mplab.base.lock.default_lock_directory`.
    """
    results = [_apply(action, runs, lock_directory) for action in actions]
    _sweep(runs)
    return tuple(results)


def _run_directories(runs: Path) -> Iterator[tuple[Path, re.Match[str]]]:
    with suppress(FileNotFoundError):
        for path in sorted(runs.iterdir()):
            match = _RUN.fullmatch(path.name)
            if match is not None and path.is_dir() and not path.is_symlink():
                yield path, match


def _manifest(path: Path) -> Manifest | None:
    """Return the manifest of a run; None: the directory is no run of this format, or its name is not the run's id."""
    try:
        manifest = RunDirectory.open(path).read_manifest()
    except MplabError:
        return None
    return manifest if manifest.run_id == path.name else None


def _ended(path: Path) -> float | None:
    """Return when a run finished, Unix seconds; None: it has not finished, or the directory is not a valid run."""
    if _manifest(path) is None:
        return None
    try:
        progress = RunProgress.from_events(read_events(RunDirectory(path).events_file, RunEvent))
    except (InputError, KeyError, TypeError, ValueError):
        return None
    return progress.updated if progress.state == "finished" else None


def _actions(path: Path, rules: RetentionFile, now: float, *, protected: bool) -> list[Action]:
    """Return the change (compress or remove captures, remove the run) that the rules require for a run; at most one.

    Args:
        path: directory of the run; runs that have not finished are not changed.
        rules: retention rules.
        now: current time, Unix seconds.
        protected: True if the run is one of the last that lose nothing (``keep_last``).
    """
    manifest, ended = _manifest(path), _ended(path)
    if manifest is None or ended is None or set(rules.keep) & set(manifest.experiment.tags):
        return []
    age_s = now - max(ended, _begun(path))
    if rules.runs is not None and age_s > rules.runs and not protected:
        return [Action("run", path, f"runs: {format_age_s(rules.runs)}", _size(_files(path)))]
    if rules.captures is not None and age_s > rules.captures and not protected and _analysed(path):
        return _of_captures("captures", path, f"captures: {format_age_s(rules.captures)}", list(_captures(path)))
    if rules.compress_after is not None and age_s > rules.compress_after:
        plain = [file for file in _captures(path) if file.suffix != _COMPRESSED and file.stat().st_size]
        return _of_captures("compress", path, f"compress_after: {format_age_s(rules.compress_after)}", plain)
    return []


def _of_captures(kind: Kind, path: Path, rule: str, files: Sequence[Path]) -> list[Action]:
    relative = tuple(file.relative_to(path) for file in files)
    return [Action(kind, path, rule, _size(files), relative)] if files else []


def _begun(path: Path) -> float:
    """Return the time at which a run started according to its name, Unix seconds; 0.0: the name has no time.

    A logged end of the run that is earlier than this start was logged with a wrong clock. The run's age then counts
    from the start.
    """
    match = _RUN.fullmatch(path.name)
    return datetime.strptime(match["stamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() if match else 0.0


def _analysed(path: Path) -> bool:
    """Return whether tables of a run's captures exist. Without them, the captures must be kept."""
    if not (path / _SUMMARY).is_file():
        return False
    directory = RunDirectory(path)
    if directory.damaged_cells():
        return False
    cells = directory.complete_cells()
    with_captures = {file.parent for file in _captures(path) if file.name.startswith("phone-")}
    folders = [path / "cells" / name for name, record in cells.items() if record.outcome == "ok"]
    return all((folder / _TABLES).is_file() for folder in folders if folder in with_captures)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the regular files in a folder and its subfolders; links are not followed."""
    for name, _, files in os.walk(folder):
        for file in sorted(files):
            path = Path(name, file)
            if path.is_file() and not path.is_symlink():
                yield path


def _captures(path: Path) -> Iterator[Path]:
    """Return the paths of all captures of a run, cell by cell, including those of failed attempts."""
    cells = path / "cells"
    return (file for file in _files(cells) if _CAPTURE.fullmatch(file.name)) if not cells.is_symlink() else iter(())


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def _apply(action: Action, runs: Path, lock_directory: Path | None) -> Result:
    path = action.run
    freed = 0
    try:
        with resource_lock(RunDirectory(path).lock_name, run_id=path.name, directory=lock_directory):
            if path.parent.resolve() != runs.resolve() or path.is_symlink() or _ended(path) is None:
                return Result(action, 0, f"{path.name}: no longer a finished run: not changed")
            if action.kind == "run":
                _remove_run(action, runs)
                return Result(action, action.size_bytes)
            with EventLog(path / LOG) as log:
                steps = _compressed(action, log) if action.kind == "compress" else _removed(action, log)
                for step in steps:
                    freed += step
    except MplabError as error:
        return Result(action, freed, str(error))
    except OSError as error:
        return Result(action, freed, f"{path.name}: {error.strerror or error}")
    return Result(action, freed)


def _remove_run(action: Action, runs: Path) -> None:
    path, aside = action.run, runs / ASIDE
    with EventLog(runs / LOG) as log:
        manifest = RunDirectory(path).manifest_file
        sha256 = _sha256(manifest)
        log.append(RunRemoved(run=path.name, rule=action.rule, bytes=action.size_bytes, manifest_sha256=sha256))
    with explained(path):
        aside.mkdir(mode=0o755, exist_ok=True)
        path.rename(aside / path.name)
        sync(runs)
        sync(aside)
        shutil.rmtree(aside / path.name)


def _removed(action: Action, log: EventLog) -> Iterator[int]:
    """Log the removal of the action's captures, then remove them; yield the bytes freed by each capture.

    The log is written first because readers of tables need it to explain missing captures.
    """
    existing = [file for name in action.files if (file := action.run / name).is_file()]
    sizes = {file: file.stat().st_size for file in existing}
    for file in existing:
        name = file.relative_to(action.run).as_posix()
        log.append(CaptureRemoved(file=name, rule=action.rule, bytes=sizes[file], sha256=_sha256(file)))
    sync(log.path)
    sync(action.run)
    for file in existing:
        file.unlink()
        _unfinished(file).unlink(missing_ok=True)
        yield sizes[file]


def _compressed(action: Action, log: EventLog) -> Iterator[int]:
    """Compress the action's captures; yield the bytes freed by each capture.

    An original file is removed after its compressed copy was verified.
    """
    for name in action.files:
        file = action.run / name
        target = file.with_name(f"{file.name}{_COMPRESSED}")
        unfinished = _unfinished(file)
        try:
            digest = _compress(file, unfinished)
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        sync(file.parent)
        size, smaller = file.stat().st_size, target.stat().st_size
        log.append(
            CaptureCompressed(
                file=name.as_posix(),
                to=target.relative_to(action.run).as_posix(),
                rule=action.rule,
                bytes=size,
                sha256=digest,
                compressed_bytes=smaller,
            )
        )
        file.unlink()
        sync(file.parent)
        yield size - smaller


def _unfinished(file: Path) -> Path:
    """Return the path of a capture's compressed copy while it is being written."""
    return file.with_name(f".{file.name}{_COMPRESSED}{_UNFINISHED}")


def _compress(file: Path, target: Path) -> str:
    """Write a compressed copy of `file` to `target`, and verify it. Return the SHA-256 of `file`, in hex.

    Raises:
        MplabError: the copy does not have the content of `file`.
    """
    with file.open("rb") as original, target.open("wb") as output:
        with gzip.GzipFile(filename="", mode="wb", fileobj=output, compresslevel=6, mtime=0) as packed:
            shutil.copyfileobj(original, packed, _CHUNK)
        output.flush()
        os.fsync(output.fileno())
    status = file.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    digest = _sha256(file)
    with gzip.open(target, "rb") as unpacked:
        if _digest(unpacked) != digest:
            raise MplabError(f"{file}: the compressed copy differs: the capture is not changed")
    return digest


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return _digest(content)


def _digest(content: BinaryIO | gzip.GzipFile) -> str:
    digest = hashlib.sha256()
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def _sweep(runs: Path) -> None:
    """Remove the rest of the runs that were moved into the folder `ASIDE` by a process that was then killed."""
    aside = runs / ASIDE
    if not aside.is_dir() or aside.is_symlink():
        return
    for path, _ in _run_directories(aside):
        shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        aside.rmdir()
