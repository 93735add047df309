"""Resume a run: plan the cells that are left, and check that they would be comparable with the complete cells."""

from dataclasses import replace
from pathlib import Path

from mplab.base.deferred import deferred
from mplab.base.errors import InputError
from mplab.base.lock import machine, resource_lock
from mplab.format.events import EventLog, read_events
from mplab.format.manifest import GitRecord, Manifest
from mplab.format.plan import Plan
from mplab.format.runevents import RunEvent, RunResumed
from mplab.lab.catalog import catalog
from mplab.run.executing import RunResult, conclude, finish, report_page
from mplab.run.hostside import host, ready
from mplab.run.hostside.beginning import held, set_deadline
from mplab.run.planning import PlannedRun, learn, plan_of
from mplab.run.progress import SILENT, RunCallbacks, RunProgress
from mplab.run.run_directory import RunDirectory
from mplab.userfiles.experiments.experiment import Experiment


def plan_rest(run: Path | str, *, failed: bool = False) -> PlannedRun:
    """Plan the cells that `resume` would run, without running or writing anything. Raises InputError like `resume`."""
    directory = RunDirectory.open(Path(run))
    experiment = _experiment_of(directory)
    plan, learnt = learn(_rest(directory, failed=failed), experiment, directory.path.parent)
    return PlannedRun(experiment, plan, directory.path.parent, learnt)


def resume(
    run: Path | str,
    *,
    failed: bool = False,
    report: bool = True,
    allow_hooks: bool = False,
    allow_lab: bool = False,
    ends_by: float | None = None,
    watch: RunCallbacks = SILENT,
) -> RunResult:
    """Continue a run that was interrupted or killed. Complete cells are kept; a complete run gets no new cell.

    Args:
        run: the run directory.
        failed: True: also make new attempts at cells that are not ok; the earlier attempts are kept.
        report: as in `mplab.run.execute`.
        allow_hooks: True: run the commands of another user's experiment on this host.
        allow_lab: True: use the lab file of another user.
        ends_by: as in `mplab.run.execute`.
        watch: as in `mplab.run.execute`.

    Raises:
        InputError: the directory is not a run, its new cells would not be comparable with the complete ones, or its
            hooks or lab file are another user's.
        LabNotReadyError, InterruptedRunError, MplabError, AnalysisError: as `mplab.run.execute`.
    """
    directory = RunDirectory.open(Path(run))
    if is_complete(directory, failed=failed):
        return _complete(directory, report=report, watch=watch)
    experiment = _experiment_of(directory)
    if not allow_hooks:
        ready.check_allowed(experiment.hooks, directory.path)
    if not allow_lab:
        ready.check_lab(experiment.lab, directory.path)
    ready.check_ready_for(experiment)
    ready.identify_real_phone(experiment.lab)
    with held(experiment, directory) as locks:
        completed = _reopen(directory, failed=failed, ends_by=ends_by, watch=watch)
        watch.begun(directory.path, completed)
        return finish(directory, experiment, locks, report=report, watch=watch)


def is_complete(directory: RunDirectory, *, failed: bool) -> bool:
    """Return whether a run has finished and has no cell left to run.

    With `failed`, cells that are not ok count as left to run.
    """
    return not _rest(directory, failed=failed).cells and _progress(directory).state == "finished"


def experiment_as_in(manifest: Manifest, experiment: Experiment) -> Experiment:
    """Return `experiment`; without its files if an old mplab wrote `manifest`, which did not hash the files."""
    return experiment if manifest.experiment.files is not None else experiment.without_files()


def changed_files(manifest: Manifest, experiment: Experiment) -> list[str]:
    """Return the paths of the files that the run of `manifest` depends on and whose content has changed since."""
    then, now = manifest.experiment.files or {}, experiment.record().files or {}
    return sorted(path for path in then if now.get(path) != then[path])


def check_unchanged(directory: RunDirectory, experiment: Experiment) -> None:
    """Raise InputError if a cell in the run's manifest would not be planned now, or differently."""
    manifest = directory.read_manifest()
    planned = {cell.id: cell.hash for cell in plan_of(experiment_as_in(manifest, experiment)).cells}
    if any(planned.get(cell.id) != cell.hash for cell in manifest.plan.cells):
        changed = changed_files(manifest, experiment)
        difference = ", ".join(changed) or "the links, scenarios or transports of this experiment"
        unless = "" if changed else " (or this kernel runs other transports)"
        raise InputError(
            f"{directory.path}: {difference} changed since the run began{unless}: its cells would not be comparable; "
            "start a new run"
        )


def _experiment_of(directory: RunDirectory) -> Experiment:
    experiment = directory.load_experiment(catalog())
    check_unchanged(directory, experiment)
    return experiment


def _complete(directory: RunDirectory, *, report: bool, watch: RunCallbacks) -> RunResult:
    """Return the result of a complete run. Make its report and ``junit.xml`` if they are missing."""
    if not directory.junit_file.is_file() or (report and not report_page(directory.path).is_file()):
        with resource_lock(directory.lock_name, run_id=directory.run_id):
            summary = conclude(directory, report=report, watch=watch)
    elif report:
        with deferred("slow to import, and only for the report"):
            from mplab.run.hostside.concluding import summary_of
        summary = summary_of(directory.path)
    else:
        summary = None
    return RunResult(directory.path, _progress(directory), summary, resumed=False)


def _reopen(directory: RunDirectory, *, failed: bool, ends_by: float | None, watch: RunCallbacks) -> int:
    """Mark damaged cells as incomplete, with `failed` also cells that are not ok; log that the run is resumed.

    Returns:
        The number of cells that stay complete.
    """
    complete, damaged = directory.complete_cells(), _damaged(directory, watch)
    again = [*(_not_ok(directory) if failed else []), *damaged]
    with EventLog(directory.events_file) as events:
        for cell in again:
            directory.reopen_cell(cell)
        completed = len(complete) - (len(again) - len(damaged))
        git = _other_code(directory, watch)
        events.append(RunResumed(complete=completed, again=tuple(again), git=git, machine=machine()))
        set_deadline(events, ends_by)
    return completed


def _other_code(directory: RunDirectory, watch: RunCallbacks) -> GitRecord | None:
    """Return the commit of this checkout, and warn, if it or its local changes differ from those at the run's start.

    None: they do not differ.
    """
    then, now = directory.read_manifest().git, host.describe_git()
    if (then.commit, then.dirty) == (now.commit, now.dirty):
        return None
    began, here = (
        f"{record.commit or 'no commit'}{' with local changes' if record.dirty else ''}" for record in (then, now)
    )
    watch.warning(f"the run was started with {began}, this is {here}: scenarios, pages and services may differ")
    return now


def _progress(directory: RunDirectory) -> RunProgress:
    return RunProgress.from_events(read_events(directory.events_file, RunEvent))


def _not_ok(directory: RunDirectory) -> list[str]:
    return [cell for cell, record in directory.complete_cells().items() if record.outcome != "ok"]


def _damaged(directory: RunDirectory, watch: RunCallbacks) -> list[str]:
    """Return the ids of the plan's damaged cells, which must be run again. Warn of each."""
    problems = directory.damaged_cells()
    planned = [cell.id for cell in directory.read_manifest().plan.cells if cell.id in problems]
    for cell in planned:
        watch.warning(f"{problems[cell]}. The cell is run again; what is left of it is kept in its folder 'attempts'")
    return planned


def _rest(directory: RunDirectory, *, failed: bool) -> Plan:
    """Return the plan of only the cells that are left to run; with `failed`, these include cells that are not ok."""
    plan = directory.read_manifest().plan
    complete = directory.complete_cells().keys() - (_not_ok(directory) if failed else [])
    left = tuple(cell for cell in plan.cells if cell.id not in complete)
    return replace(plan, cells=left, estimate_s=plan.estimate_s * len(left) / len(plan.cells))
