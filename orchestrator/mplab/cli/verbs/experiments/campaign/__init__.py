"""Run campaigns: several experiments, night after night, on all phones."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer

from mplab.base.errors import GateError, InputError
from mplab.campaign import executing
from mplab.campaign.directory import CampaignDirectory
from mplab.campaign.file import Campaign, read_campaign_file
from mplab.campaign.retention import apply_retention, plan_retention
from mplab.campaign.systemd import Nightly, Scope, folder_of, units
from mplab.campaign.systemd import install as install_units
from mplab.campaign.systemd import uninstall as uninstall_units
from mplab.cli.command import VerbApp, VerbGroup
from mplab.cli.options import JsonOption, RunsOption, meant
from mplab.cli.output import a_folder, counted, duration, err, out, print_json, table
from mplab.cli.verbs.experiments.campaign.display import CampaignDisplay, campaign_table
from mplab.cli.verbs.results.serve import HostOption, PortOption, TokenFileOption, serve_until_interrupt
from mplab.format.campaignevents import CampaignContinued, CampaignPaused
from mplab.format.record import json_of
from mplab.run.run_directory import RUNS

_WATCH_S = 1.0

CAMPAIGNS = Path("campaigns")

CampaignsOption = Annotated[
    Path,
    typer.Option(
        "--campaigns",
        help="Use the campaigns in this folder.",
        envvar="MPLAB_CAMPAIGNS",
        show_default=True,
        metavar="FOLDER",
        callback=a_folder,
    ),
]
CampaignArgument = Annotated[
    str,
    typer.Argument(
        metavar="CAMPAIGN",
        help="Campaign directory, or the beginning or end of its name. By default, the newest campaign is used.",
        show_default=False,
    ),
]
CampaignFileArgument = Annotated[Path, typer.Argument(help="Campaign file (YAML).", show_default=False)]
SystemOption = Annotated[
    bool, typer.Option("--system", help="Use units of root in /etc/systemd/system instead of units of this user.")
]


class _RunByDefault(VerbGroup):
    """Group of verbs in which ``mplab campaign FILE`` means ``mplab campaign run FILE``."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as it is given
        if args and args[0] not in self.commands and args[0].endswith((".yaml", ".yml")):
            args = ["run", *args]
        return super().resolve_command(ctx, args)


app = VerbApp(cls=_RunByDefault, no_args_is_help=True)


@app.command()
def run(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    campaigns: CampaignsOption = CAMPAIGNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the jobs without running them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a campaign: several experiments, on all phones and routers that they name ('run' may be left out)."""
    campaign = executing.plan(file, runs)
    if dry_run:
        _show_plan(campaign, as_json=as_json)
        return
    execute(executing.begin(campaign, runs=runs, campaigns=campaigns), as_json=as_json)


@app.command()
def resume(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    killed: Annotated[
        bool,
        typer.Option(
            "--killed",
            help="Continue the campaign only if it was killed: not if it has ended, was interrupted, or is running.",
        ),
    ] = False,
    of: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Continue the newest campaign of this campaign file.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Continue a campaign that was interrupted or killed; complete cells are kept."""
    if of is not None and not of.is_file():
        raise InputError(f"--of {of}: no such file")
    directory = executing.newest_of(of, campaigns) if of is not None else find_campaign(name, campaigns)
    if directory is None or (killed and not executing.read(directory).can_resume):
        return
    execute(directory, as_json=as_json)


@app.command()
def status(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Update the table until the campaign has ended.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show the progress of a campaign: jobs, phones, last failures, time left."""
    directory = find_campaign(name, campaigns)
    if watch and not as_json:
        _watch(directory)
        return
    night = executing.read(directory)
    if as_json:
        print_json({"campaign": str(directory.path), **night.to_json()})
        return
    out.print(campaign_table(night))
    if night.stopped:
        out.print(f"\nContinue with: mplab campaign resume {directory.path}", markup=False, soft_wrap=True)


@app.command()
def serve(
    name: CampaignArgument = "",
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8080,
    token_file: TokenFileOption = None,
) -> None:
    """Show a campaign as a live web page, until Ctrl-C: 'mplab serve' for its folders."""
    directory = find_campaign(name, campaigns)
    folders = [directory.runs, directory.path.resolve().parent]
    page = f"campaigns/{quote(directory.id)}"
    serve_until_interrupt(folders, host=host, port=port, token_file=token_file, page=page)


@app.command()
def pause(name: CampaignArgument = "", *, campaigns: CampaignsOption = CAMPAIGNS) -> None:
    """Pause a campaign: each run pauses after its current cell, until 'continue'."""
    directory = find_campaign(name, campaigns)
    executing.send(directory, CampaignPaused())
    err.print(f"{directory.id} pauses; continue with: mplab campaign continue {directory.id}", soft_wrap=True)


@app.command("continue")
def go_on(name: CampaignArgument = "", *, campaigns: CampaignsOption = CAMPAIGNS) -> None:
    """Continue a paused campaign."""
    directory = find_campaign(name, campaigns)
    executing.send(directory, CampaignContinued())
    err.print(f"{directory.id} continues", soft_wrap=True)


@app.command()
def release(
    resource: Annotated[str, typer.Argument(help="Name of the resource, as 'status' shows it.", show_default=False)],
    *,
    campaigns: CampaignsOption = CAMPAIGNS,
) -> None:
    """Release a phone, router, server or lab that is in quarantine or rests, for all campaigns of a folder."""
    executing.release(resource, campaigns)
    err.print(f"{resource} is used again", soft_wrap=True)


@app.command()
def install(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    campaigns: CampaignsOption = CAMPAIGNS,
    system: SystemOption = False,
    enable: Annotated[bool, typer.Option("--enable", help="Reload systemd and enable the units, too.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the units without writing them.")] = False,
) -> None:
    """Write systemd units that start a campaign every day, and continue it after a power loss."""
    campaign = executing.plan(file, runs)
    if campaign.file.at is None:
        raise InputError(f"{file}: no 'at', the time of the start. Write at: \"22:00\"")
    scope = _scope(system=system)
    nightly = Nightly(
        name=campaign.name,
        file=file.resolve(),
        at=campaign.file.at,
        runs=runs.resolve(),
        campaigns=campaigns.resolve(),
        scope=scope,
    )
    texts, folder = units(nightly), folder_of(scope)
    if dry_run:
        for name, text in texts.items():
            out.print(f"# {folder / name}\n{text}", markup=False, soft_wrap=True)
        return
    _say_commands([folder / name for name in texts], install_units(texts, folder, scope=scope, enable=enable))


@app.command()
def uninstall(
    name: Annotated[str, typer.Argument(help="Name of the campaign, as in its file.", show_default=False)],
    *,
    system: SystemOption = False,
    disable: Annotated[bool, typer.Option("--disable", help="Disable the units in systemd, too.")] = False,
) -> None:
    """Remove the systemd units of a campaign; a running one continues."""
    scope = _scope(system=system)
    _say_commands([], uninstall_units(name, folder_of(scope), scope=scope, disable=disable))


@app.command()
def tidy(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the actions without taking them.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compress and remove old captures and runs by the rules of a campaign file; campaigns do so at their end."""
    rules = read_campaign_file(file)[0].retention
    if rules is None:
        raise InputError(f"{file}: no 'retention': everything is kept")
    actions = plan_retention(runs, rules)
    results = () if dry_run else apply_retention(actions, runs)
    problems = [result for result in results if result.problem]
    if as_json:
        freed = sum(result.freed_bytes for result in results)
        entries = [
            {"text": result.action.text, "freed_bytes": result.freed_bytes, "problem": result.problem}
            for result in results
        ]
        print_json({"actions": [action.text for action in actions], "results": entries, "freed_bytes": freed})
    else:
        for action in actions:
            out.print(action.text, markup=False, soft_wrap=True)
        for result in problems:
            err.print(f"{result.action.text}: {result.problem}", style="red", markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def find_campaign(name: str, campaigns: Path) -> CampaignDirectory:
    """Return the campaign directory that `name` means: its path, or the start or end of its name in `campaigns`.

    If `name` is "", return the newest campaign in the folder `campaigns`.

    Raises:
        InputError: no campaign matches, or more than one.
    """
    if name and (Path(name) / "campaign.json").is_file():
        return CampaignDirectory.open(Path(name))
    directories = sorted(path.parent for path in campaigns.glob("*/campaign.json"))
    if not directories:
        raise InputError(f"{campaigns}: no campaign in it; 'mplab campaign FILE' makes one, --campaigns names a folder")
    names = [path.name for path in directories]
    return CampaignDirectory.open(campaigns / (meant("campaign", name, names, campaigns) if name else names[-1]))


def execute(directory: CampaignDirectory, *, as_json: bool) -> None:
    """Run all unfinished jobs of a campaign, then print its result.

    Raises:
        typer.Exit: with code 1, if a job failed, or was left out for another reason than the campaign's time limit.
        GateError: the run of a job is worse than earlier runs of its experiment, or does not meet a budget.
    """
    with executing.file_lock(directory), CampaignDisplay(directory, page=True) as display:
        state = executing.execute(directory, display.show)
    if err.is_terminal:
        err.bell()
    if as_json:
        print_json({"campaign": str(directory.path), **executing.read(directory).to_json()})
    elif out.is_terminal:
        out.print(campaign_table(executing.read(directory)))
    for status in state.not_done:
        err.print(f"{status.job.id}: {status.state}: {status.reason}", style="red", markup=False)
    if state.failed:
        raise typer.Exit(1)
    if worse := [status for status in state.jobs if status.worse]:
        raise GateError(f"{directory.id}: {len(worse)} jobs are worse: {worse[0].job.id}: {worse[0].compared}")


def _watch(directory: CampaignDirectory) -> None:
    with CampaignDisplay(directory, page=False) as display:
        while (night := executing.read(directory)).live:
            display.show(night.state)
            time.sleep(_WATCH_S)
    out.print(campaign_table(night))


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
    job_count, cell_count = counted(len(campaign.jobs), "job"), counted(sum(job.cells for job in campaign.jobs), "cell")
    out.print(f"\n{job_count}, {cell_count}, about {duration(campaign.estimate_s)}")


def _scope(*, system: bool) -> Scope:
    return "system" if system else "user"


def _say_commands(written: Sequence[Path], commands: Sequence[str]) -> None:
    for path in written:
        err.print(f"written: {path}", markup=False, soft_wrap=True)
    if commands:
        err.print("Now run these commands:")
    for command in commands:
        out.print(command, markup=False, soft_wrap=True)
