"""Read a run directory: manifest, events and cells."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeVar

from pydantic import ValidationError

from mplab.analysis.errors import NotARunError
from mplab.analysis.files import parse_json
from mplab.analysis.metric import Observation
from mplab.base.errors import InputError
from mplab.format.cell import CellRecord, is_cell_id
from mplab.format.experiment import TransportRecord
from mplab.format.manifest import Manifest
from mplab.format.plan import CellSpec
from mplab.format.runevents import RunCut, RunEvent, RunFinished, RunPlanned
from mplab.format.times import END_OF_TIME_S

Kind = TypeVar("Kind", bound=RunEvent)

PARTIAL_SUFFIX = ".partial"
OUTCOMES = ("ok", "invalid", "failed", "partial", "missing")
"""All outcomes of a planned cell; ``partial``: it was cut off, or its record is unreadable; ``missing``: no folder."""

_MOST_FOUND = 60
"""Maximum number of characters of a wrong value in a message."""


Event: TypeAlias = Observation
"""A line of ``events.jsonl``; it has the form of an observation."""


@dataclass(frozen=True)
class Cell:
    """A cell of a run: one repetition of a scenario with a transport under a link condition.

    A cell that is missing or was cut off, or whose ``cell.json`` cannot be read, has no ``record``.
    """

    id: str
    directory: Path | None
    spec: CellSpec | None
    outcome: str
    reasons: tuple[str, ...] = ()
    record: CellRecord | None = None

    @property
    def ok(self) -> bool:
        """Return whether the outcome is ``ok``; only values of ok cells enter the statistics."""
        return self.outcome == "ok"

    def observations(self) -> list[Observation]:
        """Return the lines of ``scenario.jsonl``; an empty list when there is no such file."""
        return list(read_lines(self.directory / "scenario.jsonl")) if self.directory else []


@dataclass(frozen=True)
class Run:
    """A run directory: its manifest, events and cells, as `read_run` found them."""

    directory: Path
    manifest: Manifest
    events: tuple[Event, ...]
    cells: tuple[Cell, ...]
    """All planned cells in the order of the plan, then cells on disk that are not in the plan."""

    @cached_property
    def transports(self) -> tuple[TransportRecord, ...]:
        """Return the transports that have planned cells, in the experiment's order."""
        return self.manifest.transports

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of cells by outcome, zero included."""
        counter = Counter(cell.outcome for cell in self.cells)
        return {outcome: counter[outcome] for outcome in (*OUTCOMES, *sorted(set(counter) - set(OUTCOMES)))}

    @cached_property
    def typed_events(self) -> tuple[RunEvent, ...]:
        """Return the events as validated `RunEvent` objects; events with a wrong field are left out."""
        return tuple(_typed(self.events))

    @property
    def finished(self) -> bool:
        """Return whether the last event of the whole run (``run_…``) is `RunFinished`."""
        return bool(self._of_run) and isinstance(self._of_run[-1], RunFinished)

    @property
    def cut(self) -> RunCut | None:
        """Return the event of the stop rule that ended the run early; None if no rule did."""
        before = self._of_run[-2] if self.finished and len(self._of_run) > 1 else None
        return before if isinstance(before, RunCut) else None

    @cached_property
    def _of_run(self) -> list[RunEvent]:
        """Return the events that concern the whole run: their names begin with ``run_``."""
        return [event for event in self.typed_events if event.event.startswith("run_")]

    @property
    def complete(self) -> bool:
        """Return whether no planned cell is partial or missing."""
        return not (self.counts["partial"] or self.counts["missing"])

    @property
    def duration_s(self) -> float | None:
        """Return the time from the first to the last event, seconds; None without events."""
        times = [event.t for event in self.typed_events]
        return max(times) - min(times) if times else None

    @property
    def skipped(self) -> tuple[tuple[str, str], ...]:
        """Return (transport, reason) of the transports that the lab could not offer."""
        pairs = [(s.transport, s.reason) for s in self.manifest.plan.skipped]
        for event in self.events_of(RunPlanned):
            pairs += [(entry.transport, entry.reason) for entry in event.skipped]
        return tuple(dict.fromkeys(pairs))

    def events_of(self, kind: type[Kind]) -> list[Kind]:
        """Return the events of the class ``kind``, in the order of the file."""
        return [event for event in self.typed_events if isinstance(event, kind)]


def _typed(events: Iterable[Event]) -> Iterator[RunEvent]:
    for event in events:
        with suppress(InputError):
            yield RunEvent.parse(event)


def check_folders(directory: Path) -> None:
    """Raise `NotARunError` when a folder in a run is a symbolic link: the analysis would write outside of the run."""
    for folder, names, _ in os.walk(directory):
        for name in names:
            if (path := Path(folder, name)).is_symlink():
                raise NotARunError(directory, f"{path.relative_to(directory)} is a link to a folder; a run has none")


def read_run(directory: Path) -> Run:
    """Read a run directory.

    Raises:
        NotARunError: the folder or its manifest is missing, or the manifest is wrong; the message names the problem.
    """
    directory = Path(directory)
    manifest = _read_manifest(directory)
    events = tuple(filter(_is_event, read_lines(directory / "events.jsonl")))
    return Run(directory, manifest, events, tuple(_cells(directory, manifest)))


def read_lines(path: Path) -> Iterator[Event]:
    """Yield the JSON objects of a JSON-lines file; other lines (such as one that was cut off) are left out."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                record = parse_json(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield record


def _is_event(record: Event) -> bool:
    time_s = record.get("t")
    return isinstance(record.get("event"), str) and isinstance(time_s, int | float) and 0 <= time_s < END_OF_TIME_S


def _read_manifest(directory: Path) -> Manifest:
    if not directory.is_dir():
        raise NotARunError(directory, "there is no such folder")
    path = directory / "manifest.json"
    if not path.is_file():
        raise NotARunError(directory, "manifest.json is missing")
    try:
        content = parse_json(path.read_bytes())
    except (ValueError, OSError) as error:
        raise NotARunError(directory, f"manifest.json cannot be read: {error}") from error
    if isinstance(content, dict) and content.get("format", 1) != 1:
        problem = f"manifest.json has format {content['format']}; this mplab reads format 1"
        raise NotARunError(directory, problem)
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        raise NotARunError(directory, f"manifest.json: {first_problem(error)}") from error


def _cells(directory: Path, manifest: Manifest) -> Iterator[Cell]:
    folder = directory / "cells"
    on_disk = {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()} if folder.is_dir() else {}
    planned = {spec.id: spec for spec in manifest.plan.cells}
    beside = sorted(filter(is_cell_id, {name.removesuffix(PARTIAL_SUFFIX) for name in on_disk} - set(planned)))
    for identity in (*planned, *beside):
        spec = planned.get(identity)
        if identity in on_disk:
            yield _read_cell(identity, on_disk[identity], spec)
        elif identity + PARTIAL_SUFFIX in on_disk:
            cut = on_disk[identity + PARTIAL_SUFFIX]
            yield Cell(identity, cut, spec, "partial", ("the cell was not finished",))
        else:
            yield Cell(identity, None, spec, "missing", ("the cell has not been run",))


def _read_cell(identity: str, directory: Path, spec: CellSpec | None) -> Cell:
    path = directory / "cell.json"
    try:
        record = CellRecord.model_validate(parse_json(path.read_bytes()))
    except OSError:
        return Cell(identity, directory, spec, "partial", ("cell.json is missing",))
    except ValidationError as error:
        return Cell(identity, directory, spec, "partial", (f"cell.json: {first_problem(error)}",))
    except ValueError as error:
        return Cell(identity, directory, spec, "partial", (f"cell.json: Invalid JSON: {error}",))
    return Cell(identity, directory, spec or record.spec, record.outcome, record.reasons, record)


def first_problem(error: ValidationError) -> str:
    """Return the first problem of a validation error in one line: the key, the problem and the wrong value."""
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "missing":
        return f"key '{where}' is missing"
    value = repr(first["input"])
    value = value if len(value) <= _MOST_FOUND else f"{value[:_MOST_FOUND]}…"
    text = first["msg"].removeprefix("Value error, ")
    return f"{where}: {text}: found {value}" if where else text
