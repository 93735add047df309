"""The life of a run inside its lab: every cell of the plan that is not complete yet, with retries."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from mplab.base.errors import CellError, InterruptedRunError, LabNotReadyError, MplabError
from mplab.base.files import explained
from mplab.cell.cell import Cell, CellJob, CellReport
from mplab.cell.instruments import Instruments
from mplab.drivers.services import load_service
from mplab.format.cell import AttemptRecord, CellRecord, Outcome
from mplab.format.events import EventLog, read_events
from mplab.format.plan import CellSpec
from mplab.lab.catalog import LabCatalog, android_app, services_of
from mplab.lab.make import make_lab
from mplab.lab.protocol import Lab
from mplab.run.ending import ENOUGH, Cut, EndingWatch, Told
from mplab.run.hooks import ask_hook
from mplab.run.orders import Orders
from mplab.run.outside import Outside
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiment import Experiment

_MOST_LOSSES = 3
"""Attempts at one cell in a row in which programs of the lab may end."""


OpenLab = Callable[[Experiment, RunDirectory], Lab]
"""Makes the lab of an experiment, which is not up yet; its programs log into the run directory."""


def open_lab(experiment: Experiment, directory: RunDirectory) -> Lab:
    """Return the lab that the experiment's lab file describes, with the services of its scenarios."""
    return make_lab(
        experiment.lab,
        seed=experiment.seed,
        congestion_control=experiment.congestion_control,
        logs=directory.path / "logs",
        services=[load_service(name) for name in services_of(experiment)],
        run_id=directory.run_id,
    )


class Run:
    """A run that goes on until its plan is done.

    Args:
        path: its directory, with manifest and plan in it.
        outside: answers for hooks and stop rules.
        catalog: what the names in its experiment stand for.
        open_lab: makes its lab.
        instruments: for its cells.
    """

    def __init__(
        self,
        path: Path,
        outside: Outside,
        *,
        catalog: LabCatalog,
        open_lab: OpenLab,
        instruments: Instruments,
    ) -> None:
        self._directory = RunDirectory.open(path)
        self._catalog = catalog
        self._experiment = self._directory.load_experiment(catalog)
        self._plan = self._directory.read_manifest().plan
        self._stopping = False
        self._outside = outside
        self._open_lab = open_lab
        self._instruments = instruments
        self._clock = instruments.monotonic

    def execute(self) -> None:
        """Run every cell that is not complete.

        Raises:
            InterruptedRunError: `interrupt` was called; what was complete stays complete.
            MplabError: the lab cannot be brought up, or the disk is full.
        """
        with EventLog(self._directory.events_file) as events:
            try:
                with explained(self._directory.path):
                    self._execute(events)
            except KeyboardInterrupt:
                events.append("run_interrupted")
                raise InterruptedRunError("stopped; 'mplab resume' goes on with it") from None
            except MplabError as error:
                with suppress(MplabError):  # the disk may be full
                    events.append("run_interrupted", reason=str(error))
                raise

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: the first one stops the run; further ones do not disturb the cleaning up."""
        if not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt

    def _execute(self, events: EventLog) -> None:
        todo = self._cells_to_run()
        lab = self._open_lab(self._experiment, self._directory)
        events.append("run_started", cells=len(todo))
        self._tell_what_was_not_told(events)
        cut = None
        if todo:
            with lab:
                events.append("lab_up", **lab.describe())
                cut = self._run_cells(lab, todo, events)
        if cut is not None:
            found = {"interval": cut.interval} if cut.interval is not None else {}
            events.append("run_cut", reason=cut.reason, cells=cut.cells, **found)
        outcomes = [record.outcome for record in self._directory.complete_cells().values()]
        events.append("run_finished", outcomes={name: outcomes.count(name) for name in ("ok", "invalid", "failed")})

    def _tell_what_was_not_told(self, events: EventLog) -> None:
        """A cell is on disk before it is said to be: in between, power may have failed, or the disk was full."""
        told = RunProgress.from_events(read_events(events.path)).outcomes
        for cell, record in self._directory.complete_cells().items():
            if cell not in told:
                took_s = round(sum(record.timings_s.values()), 3)
                reasons = list(record.reasons)
                events.append("cell_finished", cell=cell, outcome=record.outcome, reasons=reasons, duration_s=took_s)

    def _run_cells(self, lab: Lab, todo: Sequence[CellSpec], events: EventLog) -> Cut | None:
        """Run them in their order; what ended the run before the last one, or None."""
        watch = EndingWatch(self._experiment.ending, self._plan, todo, partial(self._look, events), clock=self._clock)
        with Orders(events, sleep=self._instruments.sleep) as orders:
            for spec in todo:
                orders.obey()
                if (cut := watch.before(spec, orders.ends_by)) is not None:
                    return cut
                outcome, duration_s = self._run_cell(lab, spec, events)
                watch.finished(spec, outcome, duration_s)
        return None

    def _look(self, events: EventLog, blocks: int) -> Told:
        """What the run has told so far: looked at between blocks, when nothing is measured that it could disturb."""
        began = self._clock()
        try:
            answer = self._outside.ask(ENOUGH)
            told = Told(bool(answer["enough"]), str(answer["text"]), answer["numbers"])
        except MplabError as error:  # what cannot be analysed now is no reason to measure no more
            told = Told(enough=False, text=str(error), numbers={})
        took_s = round(self._clock() - began, 3)
        events.append("interval_checked", blocks=blocks, enough=told.enough, text=told.text, duration_s=took_s)
        return told

    def _cells_to_run(self) -> list[CellSpec]:
        complete = self._directory.complete_cells()
        return [cell for cell in self._plan.cells if cell.id not in complete]

    def _run_cell(self, lab: Lab, spec: CellSpec, events: EventLog) -> tuple[Outcome, float]:
        """Run a cell, with its retries: its outcome, and how long it took in all, seconds."""
        began = self._clock()
        attempts: list[AttemptRecord] = self._directory.earlier_attempts(spec.id)
        retries, losses = self._experiment.retries, 0
        restored = self._restore(lab, spec, events)
        while True:
            directory, attempt = self._directory.begin_attempt(spec.id)
            events.append("cell_started", cell=spec.id, attempt=attempt)
            report = self._attempt(lab, spec, events, directory, attempt)
            report.warnings = restored + report.warnings
            reason = "; ".join(report.reasons)
            attempts.append(AttemptRecord(attempt=attempt, outcome=report.outcome, reason=reason))
            if report.outcome == "ok":
                break
            lost = self._restore(lab, spec, events)
            if rung := lab.recover(reason):
                events.append("phone_recovered", cell=spec.id, attempt=attempt, by=rung)
            if lost:
                restored += lost
                losses += 1
                if losses == _MOST_LOSSES:
                    raise LabNotReadyError(
                        f"{spec.id}: programs of the lab ended in {losses} attempts in a row: {reason}. The cell stays "
                        "open: remove the cause (the logs of the programs are in logs/ of the run), then 'mplab resume'"
                    )
            elif retries == 0:
                break
            else:
                retries, losses = retries - 1, 0
            events.append("cell_retried", cell=spec.id, attempt=attempt, reason=reason)
        self._directory.finish_cell(_record(report, attempts))
        events.append(
            "cell_finished",
            cell=spec.id,
            outcome=report.outcome,
            reasons=report.reasons,
            duration_s=round(report.duration_s, 3),
        )
        return report.outcome, self._clock() - began

    def _restore(self, lab: Lab, spec: CellSpec, events: EventLog) -> list[str]:
        """Start programs of the lab again that have ended; one sentence for each.

        An attempt in which one has ended is no result of its cell: it costs no retry.

        Raises:
            LabNotReadyError: the lab cannot be restored; the cell stays open.
        """
        try:
            restored = lab.revive()
        except (CellError, LabNotReadyError) as error:
            raise LabNotReadyError(
                f"the lab cannot be restored before {spec.id}: {error}. The cells that are left stay open: "
                "'mplab resume' runs them in a new lab"
            ) from error
        if restored:
            events.append("lab_restored", cell=spec.id, programs=restored)
        return restored

    def _attempt(
        self,
        lab: Lab,
        spec: CellSpec,
        events: EventLog,
        directory: Path,
        attempt: int,
    ) -> CellReport:
        name = self._experiment.scenario(spec.scenario).name
        scenario = self._catalog.on(self._experiment.lab)[name]
        job = CellJob(
            spec=spec,
            experiment=self._experiment,
            scenario=scenario,
            app=android_app(self._experiment.lab, name),
            directory=directory,
            attempt=attempt,
            on_step=lambda step: events.append("cell_step", cell=spec.id, step=step),
        )
        if not self._experiment.hooks.of_cells:
            return Cell(lab, job, self._instruments).run()
        return self._hooked(job, lambda: Cell(lab, job, self._instruments).run())

    def _hooked(self, job: CellJob, run: Callable[[], CellReport]) -> CellReport:
        """An attempt between its hooks; those after it are run however it ends."""
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
        began = self._clock()
        try:
            return ask_hook(self._outside, name, cell=job.spec.id, attempt=job.attempt, outcome=outcome)
        finally:
            timings[name] = round(self._clock() - began, 4)


def _record(report: CellReport, attempts: list[AttemptRecord]) -> CellRecord:
    outcome: Outcome = report.outcome
    fields: Mapping[str, Any] = {
        "id": report.spec.id,
        "spec": report.spec,
        "outcome": outcome,
        "reasons": tuple(report.reasons),
        "warnings": tuple(report.warnings),
        "attempt": report.attempt,
        "attempts": tuple(attempts),
        "started": report.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "timings_s": report.timings_s,
        "links": report.links,
        "proof": report.proof,
        "captures": tuple(report.captures),
        "congestion_control": report.congestion_control,
        "host": report.host,
        "clock_offset_ms": report.clock_offset_ms,
        "phone": report.phone,
    }
    return CellRecord.model_validate(fields)
