"""Run one cell: make its attempts, run the hooks around each, and restore the lab between attempts."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mplab.base.errors import CellError, LabNotReadyError
from mplab.cell.attempt import CellJob
from mplab.cell.cell import CellAttempt
from mplab.cell.instruments import Instruments
from mplab.cell.report import CellReport
from mplab.drivers.transport import make_transport
from mplab.format.cell import AttemptRecord, CellRecord
from mplab.format.events import EventLog
from mplab.format.plan import CellSpec
from mplab.format.runevents import CellFinished, CellRetried, CellStarted, CellStep, LabRestored, PhoneRecovered
from mplab.lab.catalog import LabCatalog, android_app
from mplab.lab.protocol import Lab
from mplab.run.hostrpc import HostClient
from mplab.run.hostside.hooks import ask_hook
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment

_MOST_LOSSES = 3
"""Number of consecutive attempts at one cell during which lab programs ended, after which the run stops."""


@dataclass(frozen=True)
class CellRunner:
    """Runs the cells of one run, one after the other.

    Attributes:
        directory: directory of the run.
        experiment: experiment of the run.
        catalog: finds the scenarios.
        outside: client of the host process, which runs hooks.
        instruments: clock and time limits of the cells.
        lab: a lab that is up.
        events: log of the run.
    """

    directory: RunDirectory
    experiment: Experiment
    catalog: LabCatalog
    outside: HostClient
    instruments: Instruments
    lab: Lab
    events: EventLog

    def run(self, spec: CellSpec) -> CellRecord:
        """Run attempts at a cell until one is ok or no retry is left. Return the content of its ``cell.json``.

        Raises:
            LabNotReadyError: the lab cannot be restored; the cell stays incomplete.
        """
        attempts: list[AttemptRecord] = self.directory.earlier_attempts(spec.id)
        retries, losses = self.experiment.retries, 0
        restored = self._restore(spec)
        while True:
            directory, number = self.directory.begin_attempt(spec.id)
            self.events.append(CellStarted(cell=spec.id, attempt=number))
            report = self._attempt(spec, directory, number)
            report.warnings = restored + report.warnings
            attempts.append(report.as_attempt())
            if report.outcome == "ok":
                break
            lost = self._restore(spec)
            if rung := self.lab.recover(report.reason):
                self.events.append(PhoneRecovered(cell=spec.id, attempt=number, by=rung))
            if lost:  # not a result of the cell: it costs no retry
                restored += lost
                losses += 1
                if losses == _MOST_LOSSES:
                    raise _gave_up(spec, losses, report.reason)
            elif retries == 0:
                break
            else:
                retries, losses = retries - 1, 0
            self.events.append(CellRetried(cell=spec.id, attempt=number, reason=report.reason))
        record = report.record(attempts)
        self.directory.finish_cell(record)
        tell_finished(self.events, record)
        return record

    def _restore(self, spec: CellSpec) -> list[str]:
        """Restart the lab programs that have ended; return one sentence for each.

        Raises:
            LabNotReadyError: a program cannot be restarted; the cell stays incomplete.
        """
        try:
            restored = self.lab.revive()
        except (CellError, LabNotReadyError) as error:
            raise LabNotReadyError(
                f"the lab cannot be restored before {spec.id}: {error}. The cells that are left stay open: "
                "'mplab resume' runs them in a new lab"
            ) from error
        if restored:
            self.events.append(LabRestored(cell=spec.id, programs=tuple(restored)))
        return restored

    def _attempt(self, spec: CellSpec, directory: Path, number: int) -> CellReport:
        experiment, events = self.experiment, self.events
        name = experiment.scenario(spec.scenario).name
        transport = experiment.transport(spec.transport)
        job = CellJob(
            spec=spec,
            experiment=experiment,
            scenario=self.catalog.on(experiment.lab)[name],
            transport=make_transport(transport.name, transport.options, self.lab.phone.interfaces, transport.files),
            app=android_app(experiment.lab, name),
            directory=directory,
            attempt=number,
            on_step=lambda step: events.append(CellStep(cell=spec.id, step=step)),
        )
        run = CellAttempt(self.lab, job, self.instruments).run
        return self._hooked(job, run) if experiment.hooks.of_cells else run()

    def _hooked(self, job: CellJob, run: Callable[[], CellReport]) -> CellReport:
        """Run the hook ``before_cell`` and the attempt, then always the hook ``after_cell``; return the report."""
        timings: dict[str, float] = {}
        outcome, problem = "interrupted", ""
        try:
            problem = self._hook("before_cell", job, timings)
            report = CellReport(job.spec, job.attempt, datetime.now(UTC), reasons=[problem]) if problem else run()
            outcome = report.outcome
        finally:
            after = self._hook("after_cell", job, timings, outcome)
        report.timings_s |= timings
        report.warnings += [after] if after else []
        return report

    def _hook(self, name: str, job: CellJob, timings: dict[str, float], outcome: str = "") -> str:
        job.on_step(name)
        clock = self.instruments.monotonic
        began = clock()
        try:
            return ask_hook(self.outside, name, cell=job.spec.id, attempt=job.attempt, outcome=outcome)
        finally:
            timings[name] = round(clock() - began, 4)


def tell_finished(events: EventLog, record: CellRecord) -> None:
    """Append the event ``cell_finished`` for a complete cell to the run's events. Raises MplabError."""
    duration_s = round(sum(record.timings_s.values()), 3)
    events.append(CellFinished(cell=record.id, outcome=record.outcome, reasons=record.reasons, duration_s=duration_s))


def _gave_up(spec: CellSpec, losses: int, reason: str) -> LabNotReadyError:
    return LabNotReadyError(
        f"{spec.id}: programs of the lab ended in {losses} attempts in a row: {reason}. The cell stays "
        "open: remove the cause (the logs of the programs are in logs/ of the run), then 'mplab resume'"
    )
