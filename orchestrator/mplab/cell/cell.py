"""Run one attempt at a cell: start its steps in order, end them in reverse order, judge the cell."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import TracebackType

import structlog

from mplab.base.errors import CellError, DeviceError, InvalidCellError, check_each
from mplab.base.load import Stalls
from mplab.cell.attempt import Attempt, CellJob
from mplab.cell.instruments import Instruments
from mplab.cell.judge import judge
from mplab.cell.report import CellReport
from mplab.cell.steps import Step, steps_of
from mplab.lab.protocol import Lab

_log = structlog.get_logger(__name__)


class CellAttempt:
    """One attempt at one cell, in a lab that is up."""

    def __init__(self, lab: Lab, job: CellJob, instruments: Instruments) -> None:
        self._attempt = Attempt(lab, job, instruments)
        self._doing = ""
        """Name of the current step."""
        self._causes: list[str] = []

    def run(self) -> CellReport:
        """Run the attempt. Everything that it changed is undone before this returns or raises.

        Returns:
            The report, whatever the outcome. KeyboardInterrupt and unexpected errors pass through.
        """
        report, instruments = self._attempt.report, self._attempt.instruments
        instruments.cpu_percent()
        load_before = instruments.load_average()
        stalls = Stalls(lambda: self._doing, clock=instruments.monotonic)
        try:
            with stalls:
                self._run_steps()
        except InvalidCellError as error:
            report.outcome, report.reasons = "invalid", [*self._causes, *error.reasons]
        except CellError as error:
            report.outcome, report.reasons = "failed", [*self._causes, str(error)]
        else:
            self._judge()
        report.warnings += stalls.warnings
        load = {
            "load_before": load_before,
            "load_after": instruments.load_average(),
            "cpu_busy_percent": instruments.cpu_percent(),
        }
        report.host = report.host.model_copy(update=load)
        return report

    def _run_steps(self) -> None:
        """Start the steps. In any case, end those that were started, last one first; then undo all changes."""
        with ExitStack() as stack:
            stack.enter_context(self._attempt.undo)
            for step in steps_of(self._attempt):
                stack.push(partial(self._end, step))
                self._do(step.name, step.start)

    def _end(
        self, step: Step, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End a step. If the cell has failed, only call `finish`, whose own failure becomes a note on `error`."""
        if error is None:
            self._do(step.end_name, step.end)
            return
        try:
            step.finish()
        except Exception as problem:  # must not keep the other steps from ending
            _log.warning("step did not end well", step=step.name or step.end_name, error=str(problem))
            error.add_note(str(problem))

    def _do(self, name: str, action: Callable[[], None]) -> None:
        """Run `action`, the start or the end of a step; report and time it under `name`.

        If `name` is "", `action` is neither reported nor timed. Times of the same name are added up.
        """
        if name and name != self._doing:
            self._attempt.job.on_step(name)
        self._doing = name or self._doing
        timings, clock = self._attempt.report.timings_s, self._attempt.instruments.monotonic
        started = clock()
        try:
            action()
        except CellError as error:
            self._name_causes(error)
            raise
        finally:
            if name:
                timings[name] = round(timings.get(name, 0.0) + clock() - started, 4)

    def _name_causes(self, error: CellError) -> None:
        """If parts of the lab or the agent have ended, record that as the first reason: it caused the cell's error."""
        try:
            check_each(self._attempt.watch)
        except DeviceError as cause:
            if str(cause) != str(error):
                self._causes.append(str(cause))

    def _judge(self) -> None:
        report, evidence = self._attempt.report, self._attempt.evidence
        assert evidence is not None  # noqa: S101 - every step has gone well
        verdict = judge(evidence, self._attempt.treatment)
        report.reasons += verdict.reasons
        report.warnings += verdict.warnings
        report.outcome = "invalid" if report.reasons else "ok"
