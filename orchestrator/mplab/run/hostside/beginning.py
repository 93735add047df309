"""Start a run: take its locks, and make its directory with plan and manifest."""

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

from mplab.base.errors import MplabError
from mplab.base.files import GO_ON
from mplab.base.lock import check_free, machine, resource_lock
from mplab.drivers.proxy import driver_of
from mplab.drivers.shaper.driver import inside_driver_of
from mplab.format.events import EventLog
from mplab.format.manifest import LabRecord, Manifest
from mplab.format.record import utc_now
from mplab.format.runevents import DeadlineSet, planned_event
from mplab.lab.catalog import services_of
from mplab.lab.hosting import prepared
from mplab.lab.resources import VIRTUAL_LAB, resources_of
from mplab.run.hostside import host
from mplab.run.hostside.ready import allow, identify_real_phone, programs_of_run, remember_lab
from mplab.run.planning import PlannedRun
from mplab.run.progress import SILENT, RunCallbacks
from mplab.run.run_directory import RunDirectory, new_run_id
from mplab.userfiles.experiments.experiment import Experiment
from mplab.userfiles.experiments.layers import kept_files


@contextlib.contextmanager
def held(experiment: Experiment, directory: RunDirectory) -> Iterator[ExitStack]:
    """Lock the run directory and, for a virtual lab, the virtual lab. Closing the yielded stack releases both locks.

    The end of the context also releases them. Phone, routers and containers are locked later, when they are used:
    this function only checks that they are free.

    Raises:
        LabNotReadyError: another run uses one of the resources. Nothing was written.
    """
    with ExitStack() as locks:
        locks.enter_context(resource_lock(directory.lock_name, run_id=directory.run_id))
        if not experiment.lab.real:
            locks.enter_context(resource_lock(VIRTUAL_LAB, run_id=directory.run_id))
        check_free(name for name in resources_of(experiment) if name != VIRTUAL_LAB)
        yield locks


def begin(
    planned: PlannedRun, *, run_id: str = "", ends_by: float | None = None, watch: RunCallbacks = SILENT
) -> RunDirectory:
    """Make the directory of a run with plan and manifest. No cell is run.

    Args:
        planned: the experiment, its cells, and the folder of runs.
        run_id: name of the directory; "": see `new_run_id`.
        ends_by: Unix seconds. A block that would end later is not started.
        watch: its function `doing` is called before containers are prepared.

    Raises:
        MplabError: the directory cannot be written ("disk full: …"); it is removed.
        LabNotReadyError: the lab is missing something.
    """
    experiment = planned.experiment
    lab = {**experiment.lab.to_json(), **identify_real_phone(experiment.lab), **_routers(experiment)}
    lab |= _containers(experiment, watch)
    files = {**kept_files(experiment.parents, experiment.given), **experiment.kept}
    run_id = run_id or new_run_id(experiment.name)
    with _whole_or_not_there(planned.runs / run_id):
        directory = RunDirectory.create(
            planned.runs, experiment.name, experiment.source, experiment.lab.source, files, run_id=run_id
        )
        _write_plan(directory, planned, lab, ends_by)
    return directory


@contextlib.contextmanager
def _whole_or_not_there(path: Path) -> Iterator[None]:
    """Remove the new run directory `path` if the block fails to write it: an incomplete one could not be resumed.

    Raises:
        MplabError: the error of the block; its message then advises to start the run again, not to resume it.
    """
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


def _write_plan(directory: RunDirectory, planned: PlannedRun, lab: Mapping[str, object], ends_by: float | None) -> None:
    with EventLog(directory.events_file) as events:
        events.append(planned_event(planned.plan, machine()))
        set_deadline(events, ends_by)
    experiment = planned.experiment
    allow(experiment.hooks)
    remember_lab(experiment.lab)
    directory.write_manifest(
        Manifest(
            run_id=directory.run_id,
            experiment=experiment.record(),
            plan=planned.plan,
            lab=LabRecord.model_validate(lab),
            host=host.describe_host(),
            versions={**host.describe_versions(programs_of_run(experiment))},
            git=host.describe_git(),
            started=utc_now(),
        )
    )


def set_deadline(events: EventLog, ends_by: float | None) -> None:
    """Append the deadline `ends_by`, Unix time in s, to a run's events; None: append nothing. Raises MplabError."""
    if ends_by is not None:
        events.append(DeadlineSet(ends_by=ends_by))


def _routers(experiment: Experiment) -> dict[str, object]:
    """Return a description of the run's virtual routers for the manifest; {} if the run has none."""
    routers = experiment.lab.inside()
    described = {name: inside_driver_of(router).describe() for name, router in routers.items()}
    return {"routers": described} if described else {}


def _containers(experiment: Experiment, watch: RunCallbacks) -> dict[str, object]:
    """Prepare the run's containers; return their description for the manifest."""
    if preparing := driver_of(experiment.lab.proxy).preparing:
        watch.doing(preparing)
    return prepared(
        experiment.lab,
        congestion_control=experiment.congestion_control,
        services=services_of(experiment),
    )
