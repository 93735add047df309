"""Execute a run inside its lab: run every cell of the plan that is not complete, with retries."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType

from mplab.base.errors import InterruptedRunError, MplabError
from mplab.base.files import explained
from mplab.cell.instruments import Instruments
from mplab.drivers.services import load_service
from mplab.format.events import EventLog, read_events
from mplab.format.plan import CellSpec
from mplab.format.runevents import (
    IntervalChecked,
    LabUp,
    RunCut,
    RunEvent,
    RunFinished,
    RunInterrupted,
    RunStarted,
)
from mplab.lab.catalog import LabCatalog, services_of
from mplab.lab.driver import LabSettings, phone_driver
from mplab.lab.protocol import Lab
from mplab.run.control import RunControl
from mplab.run.hostrpc import HostClient
from mplab.run.labside.cells import CellRunner, tell_finished
from mplab.run.labside.ending import ENOUGH, Cut, EndingWatch, IntervalCheck
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment

OpenLab = Callable[[Experiment, RunDirectory], Lab]
"""Function that returns the lab of an experiment, not yet up; the lab's programs log into the run directory."""


def open_lab(experiment: Experiment, directory: RunDirectory) -> Lab:
    """Return the lab that the experiment's lab file describes, not yet up, with the services of the scenarios."""
    settings = LabSettings(
        seed=experiment.seed,
        congestion_control=experiment.congestion_control,
        logs=directory.path / "logs",
        services=[load_service(name) for name in services_of(experiment)],
        run_id=directory.run_id,
        use=experiment.lab,
        direct_multipath=experiment.direct_multipath,
    )
    return phone_driver(experiment.lab.kind).open_lab(settings)


class RunLoop:
    """The execution of a run inside its lab, until its plan is done or a rule ends it.

    Args:
        path: run directory, with manifest and plan in it.
        outside: client of the host process, which runs hooks and checks intervals for the stop rule.
        catalog: finds the transports, scenarios and links that the experiment names.
        open_lab: returns the lab of the experiment, not yet up.
        instruments: clock and time limits of the cells.
    """

    def __init__(
        self,
        path: Path,
        outside: HostClient,
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
            InterruptedRunError: `interrupt` was called; complete cells stay complete.
            MplabError: the lab cannot be started or restored, or the disk is full.
        """
        with EventLog(self._directory.events_file) as events:
            try:
                with explained(self._directory.path):
                    self._execute(events)
            except KeyboardInterrupt:
                events.append(RunInterrupted())
                raise InterruptedRunError("stopped; 'mplab resume' continues it") from None
            except MplabError as error:
                with suppress(MplabError):  # the disk may be full
                    events.append(RunInterrupted(reason=str(error)))
                raise

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        """Handle a signal: the first one raises KeyboardInterrupt; later ones are ignored, to complete the clean-up."""
        if not self._stopping:
            self._stopping = True
            raise KeyboardInterrupt

    def _execute(self, events: EventLog) -> None:
        todo = self._cells_to_run()
        lab = self._open_lab(self._experiment, self._directory)
        events.append(RunStarted(cells=len(todo)))
        self._tell_what_was_not_told(events)
        cut = None
        if todo:
            with lab:
                events.append(LabUp.model_validate(lab.describe()))
                cut = self._run_cells(lab, todo, events)
        if cut is not None:
            events.append(RunCut(reason=cut.reason, cells=tuple(cut.cells), interval=cut.interval or {}))
        outcomes = [record.outcome for record in self._directory.complete_cells().values()]
        events.append(RunFinished(outcomes={name: outcomes.count(name) for name in ("ok", "invalid", "failed")}))

    def _tell_what_was_not_told(self, events: EventLog) -> None:
        """Log each complete cell that has no event ``cell_finished``.

        The event is missing if power failed or the disk was full after the cell's directory got its final name.
        """
        logged = RunProgress.from_events(read_events(events.path, RunEvent)).outcomes
        for cell, record in self._directory.complete_cells().items():
            if cell not in logged:
                tell_finished(events, record)

    def _run_cells(self, lab: Lab, todo: Sequence[CellSpec], events: EventLog) -> Cut | None:
        """Run cells in order. Return the decision of a stop rule to end the run early, or None."""
        runner = CellRunner(
            self._directory, self._experiment, self._catalog, self._outside, self._instruments, lab, events
        )
        watch = EndingWatch(self._experiment.ending, self._plan, todo, partial(self._look, events), clock=self._clock)
        with RunControl(events, sleep=self._instruments.sleep) as control:
            for spec in todo:
                control.wait_while_paused()
                if (cut := watch.before(spec, control.ends_by)) is not None:
                    return cut
                began = self._clock()
                record = runner.run(spec)
                watch.finished(spec, record.outcome, self._clock() - began)
        return None

    def _look(self, events: EventLog, blocks: int) -> IntervalCheck:
        """Ask the host process whether the run's confidence intervals are narrow enough; log the answer.

        It is called between blocks, where the analysis disturbs no measurement.
        """
        began = self._clock()
        try:
            answer = self._outside.ask(ENOUGH)
            numbers = answer["numbers"]
            check = IntervalCheck(
                bool(answer["enough"]), str(answer["text"]), numbers if isinstance(numbers, dict) else {}
            )
        except MplabError as error:  # an analysis error does not end the run
            check = IntervalCheck(enough=False, text=str(error), numbers={})
        took_s = round(self._clock() - began, 3)
        events.append(IntervalChecked(blocks=blocks, enough=check.enough, text=check.text, duration_s=took_s))
        return check

    def _cells_to_run(self) -> list[CellSpec]:
        complete = self._directory.complete_cells()
        return [cell for cell in self._plan.cells if cell.id not in complete]
