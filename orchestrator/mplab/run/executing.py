"""Execute a planned run, from its locks to its report."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.format.cell import Outcome
from mplab.format.events import read_events
from mplab.format.runevents import RunEvent
from mplab.run.hostside import hosting, ready
from mplab.run.hostside.beginning import begin, held
from mplab.run.hostside.junit import write_junit
from mplab.run.planning import PlannedRun
from mplab.run.progress import SILENT, RunCallbacks, RunProgress
from mplab.run.run_directory import RunDirectory, new_run_id
from mplab.userfiles.experiments.experiment import Experiment

if TYPE_CHECKING:
    from mplab.run.hostside.concluding import RunSummary


@dataclass(frozen=True)
class RunResult:
    """A run whose plan is done, or that its own stop rules ended.

    Attributes:
        path: the run directory.
        progress: counts, outcomes by cell id, and the rule that ended the run early, if any.
        summary: summary of the report; None: no report was requested.
        resumed: False if the run was already complete, so that no cell was run.
    """

    path: Path
    progress: RunProgress
    summary: "RunSummary | None"
    resumed: bool = True

    @property
    def outcomes(self) -> Mapping[str, Outcome]:
        """Return cell id → ``ok``, ``invalid`` or ``failed``."""
        return self.progress.outcomes

    @property
    def good(self) -> bool:
        """Return whether all cells that the run reached are ok and no budget is broken."""
        return self.progress.good and not self.broken_budgets

    @property
    def broken_budgets(self) -> tuple[str, ...]:
        """Return a sentence for each broken budget of the experiment; none without a report."""
        return self.summary.broken_budgets if self.summary is not None else ()

    @property
    def report(self) -> Path | None:
        """Return the path of the report's page; None: no report was requested."""
        return report_page(self.path) if self.summary is not None else None


def report_page(run: Path) -> Path:
    """Return the path of a run's report, which need not exist yet."""
    return run / "report" / "index.html"


def execute(
    planned: PlannedRun,
    *,
    report: bool = True,
    run_id: str = "",
    ends_by: float | None = None,
    watch: RunCallbacks = SILENT,
) -> RunResult:
    """Run the cells of a plan in its lab and make the report. Call from the main thread: signals are passed to the lab.

    Args:
        planned: a plan from `mplab.run.plan`.
        report: True: analyse the run. False: `mplab analyze` can do it later.
        run_id: name of the run directory; "": UTC time, name of the experiment, and six random hexadecimal digits.
        ends_by: Unix seconds. A block that would end later is not started.
        watch: functions that are called during the run.

    Raises:
        LabNotReadyError: something is missing or in use, and no run directory was made; or the lab could not be
            restored, and the run can be resumed. The message says which.
        InterruptedRunError: SIGINT or SIGTERM; the run can be resumed.
        MplabError: the run stopped, like "disk full: …"; it can be resumed.
        AnalysisError: the cells were run, but the report cannot be made.
    """
    experiment = planned.experiment
    ready.check_ready_for(experiment)
    run_id = run_id or new_run_id(experiment.name)
    with held(experiment, RunDirectory(planned.runs / run_id)) as locks:
        directory = begin(planned, run_id=run_id, ends_by=ends_by, watch=watch)
        watch.begun(directory.path, 0)
        return finish(directory, experiment, locks, report=report, watch=watch)


def finish(
    directory: RunDirectory, experiment: Experiment, locks: ExitStack, *, report: bool, watch: RunCallbacks
) -> RunResult:
    """Run the cells of a run that are not complete, then make its report. Raises the errors of `execute`."""
    for doubt in ready.doubts_about(experiment):
        watch.warning(doubt)
    progress = hosting.run_cells(directory, experiment, locks, watch=watch)
    return RunResult(directory.path, progress, conclude(directory, report=report, watch=watch))


def conclude(directory: RunDirectory, *, report: bool, watch: RunCallbacks = SILENT) -> "RunSummary | None":
    """Write ``junit.xml`` of a run that has ended; with `report`, also analyse the run.

    Returns:
        The summary of the report; None without a report.
    """
    events = list(read_events(directory.events_file, RunEvent))
    write_junit(directory.junit_file, directory.run_id, events)
    if not report:
        return None
    with deferred("slow to import, and only for the report"):
        from mplab.run.hostside import concluding
    concluding.analyze(directory.path, watch.analysis)
    summary = concluding.summary_of(directory.path)
    if summary.limits:
        write_junit(directory.junit_file, directory.run_id, events, summary.limits)
    return summary
