"""Campaigns: several experiments, night after night, over all phones."""

import contextlib
import threading
import time
import zlib
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from mplab.base.errors import GateError, InputError
from mplab.base.files import replace
from mplab.base.lock import is_locked, resource_lock
from mplab.campaign.directory import CampaignDirectory, quarantined_before
from mplab.campaign.file import Campaign, fingerprint
from mplab.campaign.page import Night
from mplab.campaign.page import serve as serve_page
from mplab.campaign.scheduler import Scheduler
from mplab.cli.options import JsonOption, RunsOption
from mplab.cli.output import counted, duration, err, out, print_json, table
from mplab.cli.verbs.experiments.nightly import upkeep
from mplab.cli.verbs.experiments.nightly.display import CampaignDisplay, campaign_table, night_of
from mplab.cli.verbs.experiments.nightly.options import (
    CAMPAIGNS,
    CampaignArgument,
    CampaignFileArgument,
    CampaignsOption,
    campaigns_in,
    find_campaign,
    read_campaign,
)
from mplab.format.campaign import CampaignRecord, CampaignState, Job
from mplab.format.campaignevents import (
    CampaignContinued,
    CampaignEvent,
    CampaignPaused,
    CampaignPlanned,
    ResourceQuarantined,
    ResourceReleased,
)
from mplab.format.events import EventLog
from mplab.format.record import json_of, utc_now
from mplab.run import host
from mplab.run.junit import Case, checks_xml
from mplab.run.orders import order
from mplab.run.planning import load
from mplab.run.run_directory import RUNS, new_run_id

_WATCH_S = 1.0


class _RunByDefault(TyperGroup):
    """``mplab nightly FILE`` is ``mplab nightly run FILE``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as it is given
        if args and args[0] not in self.commands and args[0].endswith((".yaml", ".yml")):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = typer.Typer(cls=_RunByDefault, no_args_is_help=True)


@app.command()
def run(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    campaigns: CampaignsOption = CAMPAIGNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be run.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign: several experiments, on all phones and routers that they name ('run' may be left out)."""
    campaign = read_campaign(file, runs)
    if dry_run:
        _show_plan(campaign, as_json=as_json)
        return
    resources = {resource for job in campaign.jobs for resource in job.resources}
    quarantined = quarantined_before(campaigns, resources)
    planned: list[CampaignEvent] = [CampaignPlanned(name=campaign.name, title=campaign.title, jobs=campaign.jobs)]
    planned += [ResourceQuarantined(resource=resource, reason=reason) for resource, reason in quarantined.items()]
    directory = CampaignDirectory.create(campaigns, campaign.source, _record(campaign, runs), planned)
    _execute(directory, as_json=as_json)


@app.command()
def resume(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    killed: Annotated[
        bool, typer.Option("--killed", help="Do nothing when it has ended, was interrupted, or is at work.")
    ] = False,
    of: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The newest campaign of this file.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Go on with a campaign that was interrupted or killed; what is complete is kept."""
    directory = _newest_of(of, campaigns) if of is not None else find_campaign(name, campaigns)
    if directory is None or (killed and not _can_go_on(night_of(directory))):
        return
    _execute(directory, as_json=as_json)


@app.command()
def status(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on showing it until it has ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Say how far a campaign is: jobs, phones, last failures, time left."""
    directory = find_campaign(name, campaigns)
    if watch and not as_json:
        _watch(directory)
        return
    night = night_of(directory)
    if as_json:
        print_json({"campaign": str(directory.path), **night.to_json()})
        return
    out.print(campaign_table(night))
    if night.phase in {"killed", "interrupted"}:
        out.print(f"\nGo on with: mplab nightly resume {directory.path}", markup=False, soft_wrap=True)


@app.command()
def serve(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    address: Annotated[str, typer.Option(help="Of this machine itself.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8080,
) -> None:
    """Show how far a campaign is as a web page on this machine, until Ctrl-C."""
    directory = find_campaign(name, campaigns)
    with serve_page(address, port, lambda: night_of(directory), runs=directory.runs) as url:
        err.print(f"{directory.id}: {url} (Ctrl-C ends it)", soft_wrap=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


@app.command()
def pause(name: CampaignArgument = "", *, campaigns: CampaignsOption = CAMPAIGNS) -> None:
    """Let a campaign wait: its runs after the cell that each is at, until 'continue'."""
    directory = _order(name, campaigns, CampaignPaused())
    err.print(f"{directory.id} waits; it goes on with: mplab nightly continue {directory.id}", soft_wrap=True)


@app.command("continue")
def go_on(name: CampaignArgument = "", *, campaigns: CampaignsOption = CAMPAIGNS) -> None:
    """Let a campaign go on that waits."""
    err.print(f"{_order(name, campaigns, CampaignContinued()).id} goes on", soft_wrap=True)


@app.command()
def release(
    resource: Annotated[str, typer.Argument(help="What is in quarantine, as 'status' names it.", show_default=False)],
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
) -> None:
    """Let all campaigns of a folder use a phone, router, server or lab again that is in quarantine, or rests."""
    found = list(campaigns_in(campaigns))
    stopped = [one for one in found if _stands_still(one, resource)]
    if not stopped:
        known = {status.name for one in found for status in one.read_state().resources}
        what = "is neither in quarantine nor resting" if resource in known else "is not known"
        raise InputError(f"{resource!r} {what}; known are: {', '.join(sorted(known)) or 'none'}")
    for directory in stopped:
        with EventLog(directory.events_file, beside=True) as events:
            events.append(ResourceReleased(resource=resource))
    err.print(f"{resource} is used again", soft_wrap=True)


def _stands_still(directory: CampaignDirectory, resource: str) -> bool:
    found = (status for status in directory.read_state().resources if status.name == resource)
    return any(status.quarantined or status.rests_until is not None for status in found)


def _newest_of(file: Path, campaigns: Path) -> CampaignDirectory | None:
    """Return the newest campaign of a file; None: there is no such campaign."""
    wanted = str(file.resolve())
    return next((one for one in reversed(list(campaigns_in(campaigns))) if one.read_record().file == wanted), None)


def _can_go_on(night: Night) -> bool:
    """Return whether the campaign was killed and still has time left."""
    ends_by = night.state.ends_by
    return night.phase == "killed" and (ends_by is None or ends_by > night.now)


def _record(campaign: Campaign, runs: Path) -> CampaignRecord:
    return CampaignRecord(
        campaign=new_run_id(campaign.name),
        file=str(campaign.path.resolve()),
        runs=str(runs.resolve()),
        host=host.describe_host(),
        versions=host.describe_versions(),
        git=host.describe_git(),
        started=utc_now(),
    )


def _changed(job: Job) -> bool:
    try:
        return fingerprint(load(Path(job.file), job.lab, job.phone, job.given)) != job.sha256
    except InputError:
        return True


def _execute(directory: CampaignDirectory, *, as_json: bool) -> None:
    """Run the rest of a campaign, then print its result.

    Raises:
        typer.Exit: with code 1, if a job failed, or was left out for another reason than the campaign's time limit.
        GateError: a job is worse than the earlier runs of its experiment, or exceeds a budget.
    """
    one = resource_lock(f"campaign-of-{zlib.crc32(directory.read_record().file.encode()):08x}", run_id=directory.id)
    with one, CampaignDisplay(directory, page=True) as display:
        state = Scheduler(directory, display.show, _changed).execute()
    replace(directory.junit_file, checks_xml(directory.id, _cases(state)).encode())
    if err.is_terminal:
        err.bell()
    if as_json:
        print_json({"campaign": str(directory.path), **night_of(directory).to_json()})
    elif out.is_terminal:
        out.print(campaign_table(night_of(directory)))
    bad = [status for status in state.jobs if status.state != "done"]
    for status_of in bad:
        err.print(f"{status_of.job.id}: {status_of.state}: {status_of.reason}", style="red", markup=False)
    if any(status_of.state == "failed" or status_of.reason != state.cut for status_of in bad):
        raise typer.Exit(1)
    if worse := [status_of for status_of in state.jobs if status_of.worse]:
        raise GateError(f"{directory.id}: {len(worse)} jobs are worse: {worse[0].job.id}: {worse[0].compared}")


def _cases(state: CampaignState) -> list[Case]:
    cases = []
    for found in state.jobs:
        failure = found.reason if found.state == "failed" else ""
        skipped = found.reason if found.state == "left out" else ""
        cases.append(Case("nightly.job", found.job.id, failure, skipped))
        if found.compared:
            cases.append(Case("nightly.compare", found.job.id, found.compared if found.worse else ""))
    return cases


def _watch(directory: CampaignDirectory) -> None:
    with CampaignDisplay(directory, page=False) as display:
        while (night := night_of(directory)).live:
            display.show(night.state)
            time.sleep(_WATCH_S)
    out.print(campaign_table(night))


def _order(name: str, campaigns: Path, event: CampaignEvent) -> CampaignDirectory:
    directory = find_campaign(name, campaigns)
    if not is_locked(directory.lock_name):
        raise InputError(f"{directory.id} is not running: 'mplab nightly resume' goes on with what was interrupted")
    order(directory.events_file, event)
    return directory


def _show_plan(campaign: Campaign, *, as_json: bool) -> None:
    if as_json:
        jobs = [json_of(job) for job in campaign.jobs]
        print_json({"campaign": json_of(campaign.file), "jobs": jobs})
        return
    rows = table("job", "experiment", "cells", "about", "needs")
    for job in campaign.jobs:
        needs = ", ".join(job.resources)
        rows.add_row(job.id, job.title, str(job.cells), duration(job.estimate_s), needs)
    out.print(rows)
    busiest = max(_busy(campaign.jobs).values())
    job_count, cell_count = counted(len(campaign.jobs), "job"), counted(sum(job.cells for job in campaign.jobs), "cell")
    out.print(f"\n{job_count}, {cell_count}, about {duration(busiest)}")


def _busy(jobs: tuple[Job, ...]) -> dict[str, float]:
    """Return resource → time for which the jobs need it, seconds; the largest estimates the campaign's duration."""
    found: dict[str, float] = {}
    for job in jobs:
        for name in job.resources:
            found[name] = found.get(name, 0.0) + job.estimate_s
    return found


app.command()(upkeep.install)
app.command()(upkeep.uninstall)
app.command()(upkeep.tidy)
