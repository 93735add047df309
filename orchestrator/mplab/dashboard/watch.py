"""Read the runs and campaigns of several folders again and again; only changed files are read."""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from mplab.analysis.files import parse_json
from mplab.analysis.record.run import first_problem
from mplab.analysis.results.reported import Summary
from mplab.base.deferred import deferred
from mplab.base.errors import InputError, LabNotReadyError
from mplab.base.lock import is_locked, sees_locks
from mplab.campaign.directory import CampaignDirectory
from mplab.campaign.night import REPORT, Disk, Night, disk_of
from mplab.campaign.state import CampaignTracker
from mplab.dashboard.files import fingerprint, open_below, read_below
from mplab.format.campaign import CampaignRecord, CampaignState, CellCounts, ResourceStatus
from mplab.format.campaignevents import CampaignEvent
from mplab.format.events import Event
from mplab.format.manifest import Manifest
from mplab.format.runevents import RunEvent, RunPlanned
from mplab.format.times import END_OF_TIME_S, time_of
from mplab.run.progress import ProgressTracker, RunProgress, is_recent, state_of

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.quarantine import Quarantined

MOST_RUNS = 2000
"""Number of runs, and of campaigns, of each folder that are read: those with the last names, the newest ones."""
_MOST_BYTES = 64 << 20
"""Limit for the size of each file that is read whole."""
_AT_ONCE_BYTES = 16 << 20
_AGE_S = 0.8
"""A snapshot that is younger is not made again."""
_BEAT_S = 10
"""While something runs, the version changes at least this often, because pages show elapsed time."""
_NEXT_CELLS = 5
_TRIES_SHOWN = 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UNREADABLE = (OSError, ValueError, OverflowError)
_NO_CELLS = CellCounts()
_NO_PROGRESS = RunProgress()


@dataclass(frozen=True)
class Headline:
    """Median of one transport for a headline metric of a run, with its 95 % interval."""

    scenario: str
    link: str
    metric: str
    """Name of the metric."""
    title: str
    labels: str
    unit: str
    better: str
    transport: str
    """Label of the transport."""
    n: int
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RunEntry:
    """A run, as pages show it.

    Attributes:
        folder: folder that holds the run directory.
        name: name of the run directory.
        state: state of the run (`mplab.run.progress.state_of`), or ``unreadable``: see `problem`.
        progress: current progress; its `outcomes` are kept only until the run has ended.
        coming: next cells, as planned.
        has_report: True if the run directory has ``report/index.html``.
        problem: reason why the run cannot be read; "": it can.
        words: lower-case text that a search compares with.
    """

    folder: Path
    name: str
    experiment: str = ""
    title: str = ""
    started: float | None = None
    ended: float | None = None
    state: str = "planned"
    cells: CellCounts = _NO_CELLS
    progress: RunProgress = _NO_PROGRESS
    coming: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    transports: tuple[tuple[str, str, str], ...] = ()
    """(label, title, colour) of each transport."""
    has_report: bool = False
    answers: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    headlines: tuple[Headline, ...] = ()
    problem: str = ""
    words: str = ""

    @property
    def at_work(self) -> bool:
        """Return whether a process executes the run."""
        return self.state in {"planned", "running", "paused"}


@dataclass(frozen=True)
class CampaignEntry:
    """A campaign, as pages show it; `problem` is the reason why it cannot be read."""

    path: Path
    name: str
    night: Night | None = None
    logs: frozenset[str] = frozenset()
    """Names of the files in its folder ``logs``."""
    problem: str = ""


@dataclass(frozen=True)
class Resource:
    """A phone, router, server or lab, as the newest campaign with it has it.

    Attributes:
        campaigns: folder of the campaigns, for the command that releases the resource.
        live: True if a process runs that campaign.
        tries: outcomes of its latest tries, oldest first: (job, True if it was good, Unix seconds of its end).
    """

    status: ResourceStatus
    campaign: str
    campaigns: Path
    live: bool
    tries: tuple[tuple[str, bool, float], ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """State of all folders at one moment. Runs and campaigns are in the order of their start, the newest first."""

    version: int
    now: float
    folders: tuple[Path, ...]
    runs: tuple[RunEntry, ...]
    campaigns: tuple[CampaignEntry, ...]
    resources: tuple[Resource, ...]
    disks: tuple[tuple[Path, Disk], ...]
    phones: "tuple[Quarantined, ...]" = ()
    """Phones in quarantine because runs could not make them ready, with or without a campaign."""
    left_out: int = 0
    """Number of runs and campaigns beyond `MOST_RUNS`."""
    doubles: tuple[Path, ...] = ()
    """Run directories that are not shown, because a run in an earlier folder has the same name."""

    def run(self, name: str) -> RunEntry | None:
        """Return the run with this name; None: there is no such run."""
        return next((run for run in self.runs if run.name == name), None)

    def campaign(self, name: str) -> CampaignEntry | None:
        """Return the campaign with this name; None: there is no such campaign."""
        return next((campaign for campaign in self.campaigns if campaign.name == name), None)

    @property
    def at_work(self) -> bool:
        """Return whether a process executes a run or a campaign."""
        live = any(campaign.night is not None and campaign.night.live for campaign in self.campaigns)
        return live or any(run.at_work for run in self.runs)


class _Tail:
    """Reads the lines that are appended to an event log of a run or a campaign."""

    def __init__(self, folder: Path, base: type[Event]) -> None:
        self._folder = folder
        self._base = base
        self._inode = self._offset = 0
        self._rest = b""
        self.behind = False
        """True if the last `poll` has not reached the end of the log, which is read in parts."""

    def poll(self) -> tuple[bool, list[Event]]:
        """Return whether the log was replaced, so that all events are new, and the new events.

        Lines that are no events are left out.

        Raises:
            FileNotFoundError: there is no such file.
        """
        with open_below(self._folder, ["events.jsonl"]) as file:
            status = os.fstat(file.fileno())
            replaced = status.st_ino != self._inode or status.st_size < self._offset
            if replaced:
                self._inode, self._offset, self._rest = status.st_ino, 0, b""
            file.seek(self._offset)
            content = file.read(_AT_ONCE_BYTES)
            self._offset += len(content)
            self.behind = self._offset < status.st_size
        *lines, self._rest = (self._rest + content).split(b"\n")
        if len(self._rest) > _AT_ONCE_BYTES:
            self._rest = b""
        return replaced, list(self._events(lines))

    def _events(self, lines: Iterable[bytes]) -> Iterator[Event]:
        for line in lines:
            with contextlib.suppress(ValueError, RecursionError, InputError):
                record = json.loads(line, parse_float=_in_time)
                if isinstance(record, dict):
                    yield self._base.parse(record)


class _RunReader:
    """Reads one run directory; each file again only if it has changed."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._path = folder / name
        self._entry = RunEntry(folder, name)
        self._manifest: tuple[int, ...] | None = None
        self._report: tuple[int, ...] | None = None
        self._events: tuple[int, ...] | None = None
        self._tail = _Tail(self._path, RunEvent)
        self._tracker = ProgressTracker()
        self._plan: tuple[str, ...] = ()

    def read(self, now: float) -> RunEntry:
        """Return the state of the run at the time `now`, Unix seconds."""
        changes: dict[str, object] = {}
        manifest = fingerprint(self._path, "manifest.json")
        if manifest != self._manifest:
            self._manifest = manifest
            changes |= self._read_manifest()
        report = (*fingerprint(self._path, REPORT), *fingerprint(self._path / REPORT, "summary.json", "index.html"))
        if report != self._report:
            self._report = report
            changes |= self._read_report()
        events = fingerprint(self._path, "events.jsonl")
        if events != self._events:
            changes |= self._read_events()
            self._events = None if self._tail.behind else events
        if changes:
            self._entry = replace(self._entry, **changes)  # type: ignore[arg-type]
            self._entry = replace(self._entry, words=_words(self._entry))
        progress = self._entry.progress
        if not self._entry.problem:
            state = progress.state if self._tail.behind else state_of(progress, self._path, now=now)
            if state != self._entry.state:
                self._entry = replace(self._entry, state=state)
        return self._entry

    def _read_manifest(self) -> dict[str, object]:
        try:
            manifest = _manifest_in(self._path)
        except ValueError as error:
            return {"problem": str(error)}
        experiment = manifest.experiment
        return {
            "experiment": experiment.name,
            "title": experiment.title or experiment.name,
            "started": started.timestamp() if (started := time_of(manifest.started)) is not None else None,
            "scenarios": tuple(scenario.label for scenario in experiment.scenarios),
            "links": tuple(link.name for link in experiment.links),
            "transports": tuple((look.label, look.title, look.colour) for look in manifest.transports),
            "problem": "",
        }

    def _read_report(self) -> dict[str, object]:
        has_report = False
        with contextlib.suppress(FileNotFoundError), open_below(self._path, [REPORT, "index.html"]):
            has_report = True
        summary = Summary()
        with contextlib.suppress(FileNotFoundError, ValueError):  # a report that cannot be read has no values
            content = read_below(self._path, [REPORT, "summary.json"], _MOST_BYTES)
            summary = Summary.model_validate(parse_json(content))
        return {
            "has_report": has_report,
            "answers": tuple(answer.sentence for answer in summary.answers),
            "warnings": summary.warnings,
            "headlines": tuple(_headlines(summary)),
        }

    def _read_events(self) -> dict[str, object]:
        try:
            replaced, events = self._tail.poll()
        except FileNotFoundError:
            return {}
        if replaced:
            self._tracker, self._plan = ProgressTracker(), ()
        for event in events:
            if isinstance(event, RunEvent):
                self._tracker.feed(event)
            if isinstance(event, RunPlanned):
                self._plan = tuple(cell.id for cell in event.cells)
        progress = self._tracker.progress()
        waiting = (cell for cell in self._plan if cell not in progress.outcomes and cell != progress.current_cell)
        ended = progress.state in {"interrupted", "finished"}
        return {
            "cells": CellCounts(progress.total, progress.ok, progress.invalid, progress.failed, progress.left_out),
            "coming": () if ended else tuple(islice(waiting, _NEXT_CELLS)),
            "progress": replace(progress, outcomes={}) if ended else progress,
            "ended": progress.updated if ended else None,
            **({"started": progress.started} if progress.started is not None else {}),
        }


def read_manifest(run: Path) -> Manifest | None:
    """Return the manifest of a run directory; None: it cannot be read."""
    try:
        return _manifest_in(run)
    except ValueError:
        return None


def _manifest_in(run: Path) -> Manifest:
    try:
        return Manifest.model_validate(parse_json(read_below(run, ["manifest.json"], _MOST_BYTES)))
    except FileNotFoundError:
        raise ValueError("manifest.json is missing or cannot be opened") from None
    except ValidationError as error:
        raise ValueError(f"manifest.json: {first_problem(error)}") from None
    except ValueError as error:
        raise ValueError(f"manifest.json cannot be read: {error}") from None


class _CampaignReader:
    """Reads one campaign directory; each file again only if it has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._directory = CampaignDirectory(path)
        self._tail = _Tail(path, CampaignEvent)
        self._tracker = CampaignTracker()
        self._record: tuple[int, ...] | None = None
        self._problem = ""
        self._logs: tuple[tuple[int, ...], frozenset[str]] = ((), frozenset())
        self.runs = Path()
        """Folder of the campaign's runs."""

    def read(self) -> tuple[CampaignState, frozenset[str], str]:
        """Return the state of the campaign, the names of its logs, and the reason why it cannot be read."""
        record = fingerprint(self._path, "campaign.json")
        if record != self._record:
            self._record, self._problem = record, ""
            try:
                content = read_below(self._path, ["campaign.json"], _MOST_BYTES)
                self.runs = Path(CampaignRecord.model_validate_json(content).runs)
            except FileNotFoundError:
                self._problem = "campaign.json is missing or cannot be opened"
            except ValidationError as error:
                self._problem = f"campaign.json: {first_problem(error)}"
            except ValueError as error:
                self._problem = f"campaign.json cannot be read: {error}"
        with contextlib.suppress(FileNotFoundError):
            replaced, events = self._tail.poll()
            if replaced:
                self._tracker = CampaignTracker()
            for event in events:
                if isinstance(event, CampaignEvent):
                    with contextlib.suppress(KeyError, IndexError):  # an event about an unknown job
                        self._tracker.feed(event)
        logs = fingerprint(self._path, "logs")
        if logs != self._logs[0]:
            self._logs = (logs, frozenset(_log_names(self._path / "logs")))
        return self._tracker.state, self._logs[1], self._problem

    @property
    def live(self) -> bool | None:
        """Return whether a process runs the campaign; None: it belongs to another user, so that this is unknown."""
        return True if is_locked(self._directory.lock_name) else False if sees_locks(self._path) else None


class Watcher:
    """Reads all runs and campaigns of some folders when `snapshot` is called. Several threads may call it.

    Args:
        folders: folders to read; subfolders named ``runs`` and ``campaigns`` are read, too.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(dict.fromkeys(folder.absolute() for folder in folders))
        self._runs: dict[Path, _RunReader] = {}
        self._campaigns: dict[Path, _CampaignReader] = {}
        self._lock = threading.Lock()
        self._made = 0.0
        self._last: Snapshot | None = None
        self._print: object = None

    def snapshot(self, *, now: float | None = None) -> Snapshot:
        """Return the state of all folders; its version is higher than the last one if anything has changed.

        Args:
            now: Unix seconds; default: the current time.
        """
        with self._lock:
            if self._last is not None and now is None and time.monotonic() - self._made < _AGE_S:
                return self._last
            self._last = self._read(time.time() if now is None else now)
            self._made = time.monotonic()
            return self._last

    def _read(self, now: float) -> Snapshot:
        folders = [path for folder in self._folders for path in (folder, folder / "runs", folder / "campaigns")]
        run_paths, campaign_paths, left_out = self._found(dict.fromkeys(folders))
        self._runs = {path: self._runs.get(path) or _RunReader(path.parent, path.name) for path in run_paths}
        self._campaigns = {path: self._campaigns.get(path) or _CampaignReader(path) for path in campaign_paths}
        entries: dict[str, RunEntry] = {}
        doubles: list[Path] = []
        for path, reader in self._runs.items():
            try:
                entry = reader.read(now)
            except _UNREADABLE as error:  # one bad run must not hide the others
                self._runs[path] = _RunReader(path.parent, path.name)
                entry = RunEntry(path.parent, path.name, problem=f"cannot be read: {_reason(error)}")
            first = entries.setdefault(entry.name, replace(entry, state="unreadable") if entry.problem else entry)
            if first.folder != path.parent and not _is_same(first.folder, path.parent):
                doubles.append(path)
        runs = sorted(entries.values(), key=lambda run: (run.started or 0.0, run.name), reverse=True)
        parents = dict.fromkeys(path.parent for path in (*run_paths, *campaign_paths)) or dict.fromkeys(self._folders)
        campaigns = sorted(self._read_campaigns(entries, now), key=lambda campaign: campaign.name, reverse=True)
        resources = tuple(resources_of(campaigns))
        phones = _quarantined_phones()
        nights = tuple(replace_clock(campaign) for campaign in campaigns)
        seen = (tuple(runs), tuple(doubles), nights, resources, phones)
        version = self._last.version if self._last is not None else 1
        made = Snapshot(
            version, now, self._folders, tuple(runs), tuple(campaigns), resources, disks_of(parents), phones, left_out,
            tuple(doubles),
        )  # fmt: skip
        beat = int(now // _BEAT_S) if made.at_work else 0
        if (seen, beat) != self._print:
            self._print = (seen, beat)
            made = replace(made, version=version + 1)
        return made

    def _found(self, folders: Iterable[Path]) -> tuple[list[Path], list[Path], int]:
        """Return run directories, campaign directories, and the number of both that are beyond `MOST_RUNS`."""
        runs: list[Path] = []
        campaigns: list[Path] = []
        left_out = 0
        for folder in folders:
            kinds: dict[str, list[Path]] = {"manifest.json": [], "campaign.json": []}
            for path in _directories(folder):
                for name, found in kinds.items():
                    if os.path.isfile(path / name):  # noqa: PTH113 - Path.is_file raises PermissionError
                        found.append(path)
            runs += kinds["manifest.json"][-MOST_RUNS:]
            campaigns += kinds["campaign.json"][-MOST_RUNS:]
            left_out += sum(len(found[:-MOST_RUNS]) for found in kinds.values())
        return runs, campaigns, left_out

    def _read_campaigns(self, runs: dict[str, RunEntry], now: float) -> Iterator[CampaignEntry]:
        for path, reader in self._campaigns.items():
            try:
                state, logs, problem = reader.read()
                live = reader.live
            except _UNREADABLE as error:
                self._campaigns[path] = _CampaignReader(path)
                problem = f"cannot be read: {_reason(error)}"
            if problem:
                yield CampaignEntry(path, path.name, problem=problem)
                continue
            names = {attempt.run for status in state.jobs for attempt in status.tries}
            progress = {
                status.job.id: runs[status.run].progress
                for status in state.jobs
                if status.state == "running" and status.run in runs
            }
            experiments = {run.experiment for run in runs.values() if run.headlines}
            recent = is_recent(state.updated, now) or any(
                is_recent(moment.updated, now) for moment in progress.values()
            )
            night = Night(
                state=state,
                live=state.phase in {"planned", "running", "paused"} and recent if live is None else live,
                foreign=live is None,
                now=now,
                progress=progress,
                reports=frozenset(name for name in names if name in runs and runs[name].has_report),
                trends=frozenset(status.job.experiment for status in state.jobs) & experiments,
            )
            yield CampaignEntry(path, path.name, night, logs)


def replace_clock(campaign: CampaignEntry) -> CampaignEntry:
    """Return a campaign without the time of its snapshot, to compare it with an older one."""
    return campaign if campaign.night is None else replace(campaign, night=replace(campaign.night, now=0.0))


def resources_of(campaigns: Sequence[CampaignEntry]) -> Iterator[Resource]:
    """Yield each resource with its state in its newest campaign and its latest tries in all of them.

    Args:
        campaigns: the newest campaign first.
    """
    newest: dict[str, Resource] = {}
    tries: dict[str, list[tuple[str, bool, float]]] = {}
    for campaign in campaigns:
        if campaign.night is None:
            continue
        for status in campaign.night.state.resources:
            here = Resource(status, campaign.name, campaign.path.parent, campaign.night.live)
            newest.setdefault(status.name, here)
        for job in campaign.night.state.jobs:
            for attempt in job.tries:
                if attempt.ended is not None:
                    for name in job.job.resources:
                        good = not attempt.reason
                        tries.setdefault(name, []).append((job.job.id, good, attempt.ended))
    for name in sorted(newest):
        latest = sorted(tries.get(name, ()), key=lambda entry: entry[2])[-_TRIES_SHOWN:]
        yield replace(newest[name], tries=tuple(latest))


def _quarantined_phones() -> "tuple[Quarantined, ...]":
    try:
        with deferred("only the extra 'phones' has them"):
            from mplab.drivers.phone.adb.quarantine import Quarantine
            from mplab.drivers.phone.adb.server import default_home
    except LabNotReadyError:
        return ()
    return tuple(Quarantine(default_home() / "quarantine").all())


def disks_of(folders: Iterable[Path]) -> tuple[tuple[Path, Disk], ...]:
    """Return each disk with the first folder on it."""
    found: dict[int, tuple[Path, Disk]] = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            device = folder.stat().st_dev
            if device not in found and (disk := disk_of(folder)) is not None:
                found[device] = folder, disk
    return tuple(found.values())


def _directories(folder: Path) -> list[Path]:
    """Return the subfolders of a folder in the order of their names, without links and hidden ones."""
    try:
        with os.scandir(folder) as entries:
            names = [
                entry.name for entry in entries if _NAME.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return []
    return [folder / name for name in sorted(names)]


def _is_same(folder: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return folder.samefile(other)
    return False


def _log_names(folder: Path) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".log") and entry.is_file(follow_symlinks=False):
                    yield entry.name
    except OSError:
        return


def _headlines(summary: Summary) -> Iterator[Headline]:
    for group in summary.metrics:
        if not group.headline:
            continue
        for series in group.transports:
            if series.median is not None:
                low, high = series.interval or (None, None)
                labels = " · ".join(group.labels.values())
                yield Headline(
                    group.scenario, group.link, group.metric, group.title or group.metric, labels, group.unit,
                    group.better, series.transport, series.n, series.median, low, high,
                )  # fmt: skip


def _words(run: RunEntry) -> str:
    looks = [word for label, title, _ in run.transports for word in (label, title)]
    metrics = [word for line in run.headlines for word in (line.metric, line.title, line.labels)]
    parts = dict.fromkeys(
        (run.name, run.experiment, run.title, *run.scenarios, *run.links, *looks, *metrics, *run.answers, *run.warnings)
    )
    return "\n".join(parts).casefold()


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _in_time(text: str) -> float:
    """Return a number of an event. Raise ValueError if it is no time: sums of larger ones are not finite."""
    number = float(text)
    if abs(number) >= END_OF_TIME_S:
        raise ValueError(text)
    return number
