"""``mplab run`` and ``mplab resume``."""

import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mplab.base.enter import check_namespaces, lab_process
from mplab.base.errors import GateError, InputError, InterruptedRunError, LabNotReadyError, MplabError
from mplab.base.files import GO_ON
from mplab.base.lock import check_free, resource_lock
from mplab.base.programs import ALL, FOR_REAL, FOR_UI, Program
from mplab.cli.budgets import broken_budgets, budget_cases, check_budgets
from mplab.cli.enough import check_interval, teller
from mplab.cli.options import (
    RUNS,
    AllowHooksOption,
    AllowLabOption,
    ExperimentFile,
    JsonOption,
    LabOption,
    PhoneOption,
    RunArgument,
    RunsOption,
    SetOption,
    find_run,
    load,
)
from mplab.cli.output import err, print_json
from mplab.cli.plan import about, announce_skipped, plan_of, show_plan
from mplab.cli.progress import RunDisplay
from mplab.cli.report import analyze_with_progress, print_summary
from mplab.format.events import EventLog, read_events
from mplab.format.manifest import LabRecord, Manifest
from mplab.format.plan import Plan
from mplab.format.record import utc_now
from mplab.lab.catalog import catalog, programs_of, services_of
from mplab.lab.handover import HandedOver
from mplab.lab.hosting import hosted, prepared
from mplab.lab.needs import describe_image, programs_of_lab
from mplab.lab.resources import VIRTUAL_LAB, resources_of
from mplab.run import host
from mplab.run.ending import ENOUGH
from mplab.run.hooks import QUESTION as HOOK
from mplab.run.hooks import HookRunner, allow, check_allowed, check_programs
from mplab.run.junit import write_junit
from mplab.run.labconsent import check_lab, remember_lab
from mplab.run.learnt import learn
from mplab.run.outside import Answers
from mplab.run.progress import RunProgress
from mplab.run.run_directory import RunDirectory, new_run_id
from mplab.userfiles.experiment import Experiment
from mplab.userfiles.labuse import VIRTUAL, LabUse
from mplab.userfiles.layers import kept_files
from mplab.userfiles.variables import parse_given

_POLL_S = 0.2
_INTERRUPTED = 130

NoReport = Annotated[bool, typer.Option("--no-report", help="Only run; 'mplab analyze' makes the report later.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but what goes wrong.")]
EndsBy = Annotated[
    float | None, typer.Option(hidden=True, help="Unix seconds: no block is begun that would not end by then.")
]


def run(
    file: ExperimentFile,
    *,
    lab: LabOption = "",
    phone: PhoneOption = "",
    variables: SetOption = None,
    runs: RunsOption = RUNS,
    no_report: NoReport = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the plan, as 'mplab plan' does.")] = False,
    quiet: Quiet = False,
    run_id: Annotated[str, typer.Option(hidden=True, help="What the run directory is called.")] = "",
    ends_by: EndsBy = None,
    as_json: JsonOption = False,
) -> None:
    """Run an experiment and make its report."""
    experiment = load(file, lab, phone, parse_given(variables or ()))
    check_budgets(experiment)
    check_interval(experiment)
    plan, learnt = learn(plan_of(experiment), experiment, runs)
    if dry_run:
        show_plan(experiment, plan, learnt, as_json=as_json)
        return
    check_ready_for(experiment)
    run_id = run_id or new_run_id(experiment.name)
    with held(experiment, RunDirectory(runs / run_id)) as locks:
        directory = begin(experiment, plan, runs, run_id=run_id, ends_by=ends_by)
        if not quiet:
            err.print(f"{experiment.title}: {len(plan.cells)} cells, {about(plan, learnt)}", style="bold")
            announce_skipped(plan)
        _execute(directory, locks, report=not no_report, as_json=as_json, quiet=quiet)


@contextlib.contextmanager
def held(experiment: Experiment, directory: RunDirectory) -> Iterator[ExitStack]:
    """Hold what only one run at a time may use; the stack that is yielded gives it back, at the latest at the end.

    The lab of a real phone locks phone, routers and containers itself: here is only seen that they are free.

    Raises:
        LabNotReadyError: another run has something of it; nothing was written.
    """
    with ExitStack() as locks:
        locks.enter_context(resource_lock(directory.lock_name, run_id=directory.run_id))
        if not experiment.lab.real:
            locks.enter_context(resource_lock(VIRTUAL_LAB, run_id=directory.run_id))
        check_free(name for name in resources_of(experiment) if name != VIRTUAL_LAB)
        yield locks


def begin(
    experiment: Experiment, plan: Plan, runs: Path, *, run_id: str = "", ends_by: float | None = None
) -> RunDirectory:
    """A new run directory in `runs`, with plan and manifest, and nothing run yet.

    Raises:
        MplabError: it cannot be written ("disk full: …"); nothing of it stays.
        LabNotReadyError: the lab is missing something.
    """
    lab = {**experiment.lab.to_json(), **look_at_real_phone(experiment.lab)}
    lab |= {**_routers(experiment), **_containers(experiment)}
    kept = {**kept_files(experiment.parents, experiment.given), **experiment.kept}
    run_id = run_id or new_run_id(experiment.name)
    with _whole_or_not_there(runs / run_id):
        directory = RunDirectory.create(
            runs, experiment.name, experiment.source, experiment.lab.source, kept, run_id=run_id
        )
        _write_plan(directory, experiment, plan, lab, ends_by)
    return directory


@contextlib.contextmanager
def _whole_or_not_there(path: Path) -> Iterator[None]:
    """Remove a new run directory that cannot be written: it could not be resumed."""
    existed = path.exists()
    try:
        yield
    except MplabError as error:
        if existed:
            raise
        shutil.rmtree(path, ignore_errors=True)
        if GO_ON not in str(error):
            raise
        raise MplabError(str(error).replace(GO_ON, "make space, then start the run again")) from error


def _write_plan(
    directory: RunDirectory, experiment: Experiment, plan: Plan, lab: dict[str, Any], ends_by: float | None
) -> None:
    with EventLog(directory.events_file) as events:
        events.append("run_planned", **plan.to_json())
        _set_deadline(events, ends_by)
    allow(experiment.hooks)
    remember_lab(experiment.lab)
    directory.write_manifest(
        Manifest(
            run_id=directory.run_id,
            experiment=experiment.record(),
            plan=plan,
            lab=LabRecord.model_validate(lab),
            host=host.describe_host(),
            versions={**host.describe_versions(_programs(experiment))},
            git=host.describe_git(),
            started=utc_now(),
        )
    )


def _set_deadline(events: EventLog, ends_by: float | None) -> None:
    if ends_by is not None:
        events.append("deadline_set", ends_by=ends_by)


def resume(
    run_name: RunArgument = "",
    runs: RunsOption = RUNS,
    *,
    failed: Annotated[
        bool,
        typer.Option("--failed", help="Make new attempts at the cells that are not ok; the earlier ones are kept."),
    ] = False,
    no_report: NoReport = False,
    allow_hooks: AllowHooksOption = False,
    allow_lab: AllowLabOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the cells that would be run.")] = False,
    quiet: Quiet = False,
    ends_by: EndsBy = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a run that was interrupted or killed; complete cells are kept."""
    directory = RunDirectory.open(find_run(run_name, runs))
    if not dry_run and _is_complete(directory, failed=failed):
        _finish_complete(directory, report=not no_report, as_json=as_json, quiet=quiet)
        return
    experiment = directory.load_experiment(catalog())
    _check_unchanged(directory, experiment)
    if dry_run:
        show_plan(
            experiment, *learn(_rest(directory, failed=failed), experiment, directory.path.parent), as_json=as_json
        )
        return
    if not allow_hooks:
        check_allowed(experiment.hooks, directory.path)
    if not allow_lab:
        check_lab(experiment.lab, directory.path)
    check_ready_for(experiment)
    look_at_real_phone(experiment.lab)
    with held(experiment, directory) as locks:
        complete, damaged = directory.complete_cells(), _damaged(directory)
        again = [*(_not_ok(directory) if failed else []), *damaged]
        with EventLog(directory.events_file) as events:
            for cell in again:
                directory.reopen_cell(cell)
            done = len(complete) - (len(again) - len(damaged))
            events.append("run_resumed", complete=done, again=again, **_other_code(directory))
            _set_deadline(events, ends_by)
        if not quiet:
            err.print(f"{directory.run_id}: {done} cells are complete", style="bold")
        _execute(directory, locks, report=not no_report, as_json=as_json, quiet=quiet)


def _other_code(directory: RunDirectory) -> dict[str, Any]:
    """Return ``git`` when the checkout is not at the commit that the run began with, after a warning."""
    then, now = directory.read_manifest().git, host.describe_git()
    if (then.commit, then.dirty) == (now.commit, now.dirty):
        return {}
    began, here = (f"{one.commit or 'no commit'}{' with local changes' if one.dirty else ''}" for one in (then, now))
    err.print(
        f"! the run began with {began}, this is {here}: scenarios, pages and services may not be the same",
        style="yellow",
        soft_wrap=True,
    )
    return {"git": now.model_dump()}


def _is_complete(directory: RunDirectory, *, failed: bool) -> bool:
    """Whether a run has ended, and nothing of its plan is left to be run."""
    return not _rest(directory, failed=failed).cells and _progress(directory).state == "finished"


def _progress(directory: RunDirectory) -> RunProgress:
    return RunProgress.from_events(read_events(directory.events_file))


def _finish_complete(directory: RunDirectory, *, report: bool, as_json: bool, quiet: bool) -> None:
    """Print that a run is complete. Make only a report or ``junit.xml`` that is missing since it was killed before."""
    progress = _progress(directory)
    if not quiet:
        err.print(f"{directory.run_id}: complete: {progress.ok} of {progress.total} cells are ok", style="bold")
    page = directory.path / "report" / "index.html"
    if not directory.junit_file.is_file() or (report and not page.is_file()):
        with resource_lock(directory.lock_name, run_id=directory.run_id):
            conclude(directory, report=report)
    _finish(directory.path, progress, report=report, as_json=as_json, quiet=quiet)


def _not_ok(directory: RunDirectory) -> list[str]:
    return [cell for cell, record in directory.complete_cells().items() if record.outcome != "ok"]


def _damaged(directory: RunDirectory) -> list[str]:
    """Return the damaged cells of the plan, which must be made again, after a warning for each."""
    found = directory.damaged_cells()
    planned = [cell.id for cell in directory.read_manifest().plan.cells if cell.id in found]
    for cell in planned:
        err.print(
            f"! {found[cell]}. The cell is run again; what is left of it is kept in its folder 'attempts'",
            style="yellow",
            markup=False,
            soft_wrap=True,
        )
    return planned


def _rest(directory: RunDirectory, *, failed: bool) -> Plan:
    """What is left of a run's plan."""
    made = directory.read_manifest().plan
    kept = directory.complete_cells().keys() - (_not_ok(directory) if failed else [])
    left = tuple(cell for cell in made.cells if cell.id not in kept)
    return replace(made, cells=left, estimate_s=made.estimate_s * len(left) / len(made.cells))


def _routers(experiment: Experiment) -> dict[str, Any]:
    """What the virtual routers of a run are made of."""
    names = experiment.lab.virtual_routers()
    return {"routers": {name: describe_image() for name in names}} if names else {}


def _containers(experiment: Experiment) -> dict[str, Any]:
    """What the containers of a run are made of; they are made when they are not there yet."""
    if experiment.lab.proxy is not None:
        err.print("containers: images, configurations and content", style="dim")
    return prepared(
        experiment.lab,
        congestion_control=experiment.congestion_control,
        services=services_of(experiment),
    )


def check_ready(*, needs_ui: bool, further: Iterable[Program] = (), use: LabUse = VIRTUAL) -> None:
    """Raise LabNotReadyError when something that a lab needs of this machine is missing, or a further program."""
    always, title = (FOR_REAL, "this machine") if use.real else (ALL, "the virtual lab")
    needed = [program for program in always if needs_ui or use.real or program not in FOR_UI]
    needed += [program for program in further if program not in needed]
    missing = [f"{program.name}: {program.remedy}" for program in needed if program.find() is None]
    if missing:
        raise LabNotReadyError(f"{title} is not ready; 'mplab doctor' says more. Missing: " + "; ".join(missing))
    if not use.real:
        check_namespaces()


def look_at_real_phone(use: LabUse) -> dict[str, Any]:
    """What the manifest says of a real phone; {} of others, which are there when the lab is.

    Raises:
        LabNotReadyError: it is not there, in use, or not rooted.
    """
    if not use.real:
        return {}
    from mplab.lab.bench import look_at_phone  # noqa: PLC0415 - Docker's client is slow to import

    return {"identity": look_at_phone(use)}


def _needs_ui(experiment: Experiment) -> bool:
    there = catalog().on(experiment.lab)
    return any(there[use.name].needs_ui for use in experiment.scenarios)


def _programs(experiment: Experiment) -> list[Program]:
    """What this run needs beside what every lab needs."""
    there = catalog().on(experiment.lab)
    found = [program for use in experiment.scenarios for program in programs_of(there[use.name])]
    return [*found, *programs_of_lab(experiment.lab)]


def _check_unchanged(directory: RunDirectory, experiment: Experiment) -> None:
    """Raise InputError when this mplab would plan other cells than the run's manifest has."""
    manifest = directory.read_manifest()
    planned = {cell.id: cell.hash for cell in plan_of(experiment_as_in(manifest, experiment)).cells}
    if {cell.id: cell.hash for cell in manifest.plan.cells} != planned:
        changed = changed_files(manifest, experiment)
        what = ", ".join(changed) or "the links, scenarios or transports of this experiment"
        raise InputError(
            f"{directory.path}: {what} changed since the run began{'' if changed else ' (or this kernel runs other '}"
            f"{'' if changed else 'transports)'}: its cells would not be comparable; start a new run"
        )


def experiment_as_in(manifest: Manifest, experiment: Experiment) -> Experiment:
    """The experiment as the mplab saw it that has written a manifest: older ones hashed no files."""
    return experiment if manifest.experiment.files is not None else experiment.without_files()


def changed_files(manifest: Manifest, experiment: Experiment) -> list[str]:
    """Files that a run depends on whose content is no longer what it was."""
    then, now = manifest.experiment.files or {}, experiment.record().files or {}
    return sorted(path for path in then if now.get(path) != then[path])


def _execute(directory: RunDirectory, locks: ExitStack, *, report: bool, as_json: bool, quiet: bool) -> None:
    """Run the cells inside a lab while showing progress, then analyse; ends with the run's exit code."""
    progress = execute(directory, locks, report=report, quiet=quiet)
    if err.is_terminal and not quiet:
        err.bell()
    _finish(directory.path, progress, report=report, as_json=as_json, quiet=quiet)


def execute(directory: RunDirectory, locks: ExitStack, *, report: bool = True, quiet: bool = False) -> RunProgress:
    """Run every open cell, write ``junit.xml``, and analyse.

    Raises:
        As `run_cells`.
    """
    progress = run_cells(directory, locks, quiet=quiet)
    conclude(directory, report=report)
    return progress


def conclude(directory: RunDirectory, *, report: bool) -> None:
    """Write what follows from the cells of a run: ``junit.xml`` and, with `report`, the analysis."""
    write_junit(directory.junit_file, directory.run_id, read_events(directory.events_file))
    if report:
        analyze_with_progress(directory.path)
        if cases := budget_cases(directory.path):
            write_junit(directory.junit_file, directory.run_id, read_events(directory.events_file), cases)


def check_ready_for(experiment: Experiment) -> None:
    """Raise LabNotReadyError when something that an experiment needs is missing."""
    check_ready(needs_ui=_needs_ui(experiment), further=_programs(experiment), use=experiment.lab)
    check_programs(experiment.hooks)


def run_cells(directory: RunDirectory, locks: ExitStack, *, quiet: bool = False) -> RunProgress:
    """Run every open cell in a lab, showing progress.

    Args:
        directory: of the run.
        locks: what `held` has yielded: others may have the lab when this returns.
        quiet: show only what goes wrong.

    Raises:
        InterruptedRunError: SIGINT or SIGTERM.
        MplabError: the run stopped; the message says why.
    """
    logs = directory.path / "logs"
    logs.mkdir(exist_ok=True)
    experiment = directory.load_experiment(catalog())
    command = [sys.executable, "-m", "mplab.run.inside", "run", str(directory.path.resolve())]
    with ExitStack() as stack:
        stack.enter_context(locks)
        hooks = stack.enter_context(HookRunner(experiment.hooks, directory))
        log = stack.enter_context((logs / "orchestrator.log").open("ab"))
        words = stack.enter_context(tempfile.TemporaryFile())
        given = stack.enter_context(
            hosted(
                experiment.lab,
                congestion_control=experiment.congestion_control,
                services=services_of(experiment),
                run_id=directory.run_id,
            )
        )
        _check_images(directory, given)
        inherited = given.inherited() if given is not None else {"environment": {}, "descriptors": ()}
        private = not experiment.lab.real
        answers = stack.enter_context(
            Answers({HOOK: hooks.answer, ENOUGH: teller(directory.path, experiment.ending.interval)})
        )
        stack.callback(hooks.close)
        inherited = answers.inherited(**inherited)
        inside = stack.enter_context(lab_process(command, stdout=words, stderr=log, private=private, **inherited))
        answers.begin()
        display = stack.enter_context(RunDisplay(directory.events_file, quiet=quiet))
        while (code := inside.wait(_POLL_S)) is None:
            display.poll()
        display.poll()  # what it said last
        words.seek(0)
        said = words.read().decode(errors="replace")
        progress = display.progress
        hooks.outcome = "interrupted" if code == _INTERRUPTED else "ok" if code == 0 and progress.good else "failed"
    if code == _INTERRUPTED:
        raise InterruptedRunError(
            f"stopped after {progress.done} of {progress.total} cells; go on with: mplab resume {directory.path}"
        )
    if code != 0:
        raise _error_of(code, said, logs / "orchestrator.log")
    return progress


def _check_images(directory: RunDirectory, given: HandedOver | None) -> None:
    """Raise InputError when cells would run with other images than those that the manifest names."""
    if given is None:
        return
    before = directory.read_manifest().lab.containers.images
    if changed := sorted(name for name, image in before.items() if given.facts["images"].get(name) != image):
        raise InputError(
            f"{directory.path}: the images {', '.join(changed)} have changed since the run began: its cells would not "
            "be comparable; start a new run"
        )


def _error_of(code: int, said: str, log: Path) -> MplabError:
    """What the process inside ended with."""
    kinds = {kind.exit_code: kind for kind in (MplabError, InputError, LabNotReadyError)}
    for line in said.splitlines():
        record = json.loads(line)
        if record["event"] == "error":
            return kinds.get(code, MplabError)(record["error"])
    lines = log.read_text(errors="replace").strip().splitlines()
    return MplabError(f"the run ended unexpectedly: {lines[-1] if lines else f'exit code {code}'} (see {log})")


def _finish(path: Path, progress: RunProgress, *, report: bool, as_json: bool, quiet: bool) -> None:
    page = path / "report" / "index.html"
    if as_json:
        print_json(
            {
                "run": str(path),
                "report": str(page) if report else None,
                "outcomes": {"ok": progress.ok, "invalid": progress.invalid, "failed": progress.failed},
            }
        )
    elif report and not quiet:
        print_summary(path)
    if progress.cut and not quiet:
        err.print(f"ended before {progress.left_out} of {progress.total} cells: {progress.cut}", style="yellow")
    if not progress.good:
        raise typer.Exit(1)
    if report and (broken := broken_budgets(path)):
        raise GateError(f"{path.name}: {len(broken)} of its budgets are broken: {'; '.join(broken)}")
