"""Plan, start, execute and steer campaigns: the functions behind ``mplab campaign``."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from mplab.base.errors import InputError
from mplab.base.files import replace
from mplab.base.lock import is_locked, resource_lock
from mplab.campaign.directory import CampaignDirectory, quarantined_before
from mplab.campaign.file import Campaign, fingerprint, load_campaign
from mplab.campaign.night import Night, read_night
from mplab.campaign.scheduler import Scheduler
from mplab.format.campaign import CampaignRecord, CampaignState, Job
from mplab.format.campaignevents import CampaignEvent, CampaignPlanned, ResourceQuarantined, ResourceReleased
from mplab.format.record import utc_now
from mplab.run.control import request
from mplab.run.hostside import host
from mplab.run.hostside.junit import Case, checks_xml
from mplab.run.planning import load, plan_experiment
from mplab.run.run_directory import new_run_id


def plan(file: Path, runs: Path) -> Campaign:
    """Read and plan the campaign of `file`. Durations are estimated from earlier runs in the folder `runs`.

    Raises:
        InputError: the file, or a file that it names, is wrong.
        LabNotReadyError: an experiment has no transport that can run.
    """
    return load_campaign(file, load=load, plan=lambda experiment: plan_experiment(experiment, runs).plan)


def begin(campaign: Campaign, *, runs: Path, campaigns: Path) -> CampaignDirectory:
    """Create the directory of a planned campaign, and return it; no job is started.

    Resources that are quarantined in their newest campaign are also quarantined in this one.

    Args:
        campaign: the campaign file with its planned jobs.
        runs: folder that gets the directories of the runs.
        campaigns: folder that gets the campaign's directory.

    Raises:
        MplabError: the directory cannot be created.
    """
    quarantined = quarantined_before(campaigns, {resource for job in campaign.jobs for resource in job.resources})
    planned: list[CampaignEvent] = [CampaignPlanned(name=campaign.name, title=campaign.title, jobs=campaign.jobs)]
    planned += [ResourceQuarantined(resource=resource, reason=reason) for resource, reason in quarantined.items()]
    record = CampaignRecord(
        campaign=new_run_id(campaign.name),
        file=str(campaign.path.resolve()),
        runs=str(runs.resolve()),
        host=host.describe_host(),
        versions=host.describe_versions(),
        git=host.describe_git(),
        started=utc_now(),
    )
    return CampaignDirectory.create(campaigns, campaign.source, record, planned)


def file_lock(directory: CampaignDirectory) -> AbstractContextManager[None]:
    """Return a context that locks the file of a campaign, so that only one campaign of this file runs at a time.

    Entering the context raises LabNotReadyError if another process holds the lock.
    """
    file = directory.read_record().file
    return resource_lock(f"campaign-of-{zlib.crc32(file.encode()):08x}", run_id=directory.id)


def execute(directory: CampaignDirectory, on_state: Callable[[CampaignState], None]) -> CampaignState:
    """Run all unfinished jobs of a campaign, write its ``junit.xml``, and return its final state.

    The caller must hold `file_lock`.

    Args:
        directory: directory of the campaign.
        on_state: called with the campaign's state whenever the state may have changed.

    Raises:
        MplabError: see `Scheduler.execute`.
    """
    state = Scheduler(directory, on_state, _changed).execute()
    replace(directory.junit_file, checks_xml(directory.id, _cases(state)).encode())
    return state


def read(directory: CampaignDirectory) -> Night:
    """Return the current state of a campaign and of its runs. Raises InputError."""
    return read_night(directory.read_state(), directory.runs, live=is_locked(directory.lock_name))


def campaigns_in(folder: Path) -> Iterator[CampaignDirectory]:
    """Yield the directories of all campaigns in a folder, oldest first. Raises InputError: one has another format."""
    for path in sorted(folder.glob("*/campaign.json")):
        yield CampaignDirectory.open(path.parent)


def newest_of(file: Path, campaigns: Path) -> CampaignDirectory | None:
    """Return the directory of the newest campaign that was started from a file; None: there is no such campaign."""
    path = str(file.resolve())
    newest_first = reversed(list(campaigns_in(campaigns)))
    return next((directory for directory in newest_first if directory.read_record().file == path), None)


def send(directory: CampaignDirectory, event: CampaignEvent) -> None:
    """Ask the process that runs a campaign to pause or to continue it, by an event in the campaign's log.

    Raises:
        InputError: no process runs the campaign.
    """
    if not is_locked(directory.lock_name):
        raise InputError(
            f"{directory.id} is not running: 'mplab campaign resume' continues a campaign that was interrupted"
        )
    request(directory.events_file, event)


def release(resource: str, campaigns: Path) -> None:
    """Release a resource from rest or quarantine in all campaigns of a folder.

    Raises:
        InputError: in no campaign, a resource of this name rests or is quarantined.
    """
    states = {directory: directory.read_state() for directory in campaigns_in(campaigns)}
    stopped = [
        directory
        for directory, state in states.items()
        if any(status.name == resource and status.stopped for status in state.resources)
    ]
    if not stopped:
        known = {status.name for state in states.values() for status in state.resources}
        problem = "is neither in quarantine nor resting" if resource in known else "is not known"
        raise InputError(f"{resource!r} {problem}; known are: {', '.join(sorted(known)) or 'none'}")
    for directory in stopped:
        request(directory.events_file, ResourceReleased(resource=resource))


def _changed(job: Job) -> bool:
    try:
        return fingerprint(load(Path(job.file), job.lab, job.phone, job.given)) != job.sha256
    except InputError:
        return True


def _cases(state: CampaignState) -> Iterator[Case]:
    for status in state.jobs:
        failure = status.reason if status.state == "failed" else ""
        skipped = status.reason if status.state == "left out" else ""
        yield Case("campaign.job", status.job.id, failure, skipped)
        if status.compared:
            yield Case("campaign.compare", status.job.id, status.compared if status.worse else "")
