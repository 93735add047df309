"""Define one attempt at a cell: its lab, its requested treatment, its observations, the state that its steps share."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from mplab.base.undo import UndoStack
from mplab.cell.evidence import CellEvidence, Treatment
from mplab.cell.instruments import Instruments
from mplab.cell.report import CellReport
from mplab.drivers.transport import Transport
from mplab.drivers.ui.evidence import OpenApps
from mplab.format.link import LinkCondition
from mplab.format.plan import CellSpec
from mplab.lab.protocol import Lab
from mplab.scenarios.base import AnyScenario
from mplab.userfiles.experiments.app import AndroidApp
from mplab.userfiles.experiments.experiment import Experiment, ScenarioUse


@dataclass(frozen=True)
class CellJob:
    """The specification of one attempt at a cell.

    Attributes:
        spec: entry of the cell in the plan.
        experiment: experiment of the cell.
        scenario: scenario to run.
        transport: transport that carries the TCP connections of the phone's apps.
        app: the Android app that the scenario uses, or None.
        directory: folder for all files of the attempt.
        attempt: number of the attempt, from 1.
        on_step: called with the name of each step when it starts.
    """

    spec: CellSpec
    experiment: Experiment
    scenario: AnyScenario
    transport: Transport
    directory: Path
    attempt: int
    on_step: Callable[[str], object]
    app: AndroidApp | None = None

    @property
    def logs(self) -> Path:
        """Return the folder for the logs of the cell; it is made on first use."""
        folder = self.directory / "logs"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def use(self) -> ScenarioUse:
        """Return the scenario's label, parameters and limits."""
        return self.experiment.scenario(self.spec.scenario)

    @property
    def link(self) -> LinkCondition:
        """Return the requested link condition."""
        return self.experiment.link(self.spec.link)


@dataclass
class Attempt:
    """State that the steps of an attempt share.

    Attributes:
        lab: a lab that is up.
        job: specification of the attempt.
        instruments: measuring instruments.
        undo: every change registers its undo here before it is made; all are undone at the end of the attempt.
        apps: apps that the scenario has open.
        treatment: the requested treatment.
        observe: writes ``scenario.jsonl``.
        watch: checks, each of which raises DeviceError if a part of the lab, or the agent, has ended.
        report: filled in by the steps.
        evidence: measurements of an attempt that completed all its steps; otherwise None.
    """

    lab: Lab
    job: CellJob
    instruments: Instruments
    undo: UndoStack = field(default_factory=UndoStack)
    apps: OpenApps = field(default_factory=OpenApps)
    evidence: CellEvidence | None = None

    def __post_init__(self) -> None:
        """Derive the requested treatment from `job`; begin with an empty report and a closed observation log."""
        job = self.job
        job.transport.stripped = job.link.stripped
        self.treatment = Treatment(
            transport=job.transport,
            paths=job.link.paths(),
            sockets=job.experiment.sockets(job.spec.transport),
            handed_over=bool(self.lab.endpoints.app_proxy),
        )
        self.observe = ObservationLog(job.directory / "scenario.jsonl", clock=self.instruments.wall)
        self.watch = [self.lab.check_alive]
        self.report = CellReport(job.spec, job.attempt, datetime.now(UTC))


WARNING = "warning"


class ObservationLog:
    """``scenario.jsonl`` of one cell; call it to record an event.

    Args:
        path: path of the file, which must not exist yet.
        clock: returns Unix time, s.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._file: IO[str] | None = None
        self.warnings: list[str] = []
        """Texts of the observations ``warning``, without duplicates."""

    def __enter__(self) -> Self:
        """Open ``scenario.jsonl``."""
        self._file = self._path.open("x", encoding="utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close ``scenario.jsonl``."""
        if self._file is not None:
            self._file.close()

    def __call__(self, event: str, **fields: object) -> None:
        """Record `event` with the wall-clock time and `fields` (JSON values). Raises RuntimeError: it is not open."""
        if self._file is None:
            raise RuntimeError(f"{self._path} is not open")
        record = {"t": round(self._clock(), 6), "event": event, **fields}
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._file.flush()
        if event == WARNING and (text := str(fields["text"])) not in self.warnings:
            self.warnings.append(text)
