"""``mplab nightly install``, ``uninstall`` and ``tidy``: what keeps campaigns going, and their disk from filling."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import InputError
from mplab.campaign.file import read_campaign_file
from mplab.campaign.retention import apply_retention, plan_retention
from mplab.campaign.systemd import Nightly, Scope, folder_of, units
from mplab.campaign.systemd import install as install_units
from mplab.campaign.systemd import uninstall as uninstall_units
from mplab.cli.options import JsonOption, RunsOption
from mplab.cli.output import err, out, print_json
from mplab.cli.verbs.experiments.nightly.options import CAMPAIGNS, CampaignFileArgument, CampaignsOption, read_campaign
from mplab.run.run_directory import RUNS

SystemOption = Annotated[
    bool, typer.Option("--system", help="Root's units, in /etc/systemd/system, not those of whoever calls this.")
]


def install(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    campaigns: CampaignsOption = CAMPAIGNS,
    system: SystemOption = False,
    enable: Annotated[bool, typer.Option("--enable", help="Also have systemd use them.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show them.")] = False,
) -> None:
    """Write systemd units that begin a campaign every day, and go on with it after a power loss."""
    campaign = read_campaign(file, runs)
    if campaign.file.at is None:
        raise InputError(f"{file}: no 'at': when is it to begin? Write at: \"22:00\"")
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


def uninstall(
    name: Annotated[str, typer.Argument(help="Of the campaign, as its file has it.", show_default=False)],
    *,
    system: SystemOption = False,
    disable: Annotated[bool, typer.Option("--disable", help="Also have systemd forget them.")] = False,
) -> None:
    """Remove the systemd units of a campaign; one that is at work goes on."""
    scope = _scope(system=system)
    _say_commands([], uninstall_units(name, folder_of(scope), scope=scope, disable=disable))


def tidy(
    file: CampaignFileArgument,
    *,
    runs: RunsOption = RUNS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compress and remove old captures and runs as a campaign file says; campaigns do so at their end."""
    rules = read_campaign_file(file)[0].retention
    if rules is None:
        raise InputError(f"{file}: no 'retention': everything is kept")
    actions = plan_retention(runs, rules)
    results = () if dry_run else apply_retention(actions, runs)
    problems = [result for result in results if result.problem]
    if as_json:
        freed = sum(result.freed_bytes for result in results)
        done = [{"text": one.action.text, "freed_bytes": one.freed_bytes, "problem": one.problem} for one in results]
        print_json({"actions": [action.text for action in actions], "results": done, "freed_bytes": freed})
    else:
        for action in actions:
            out.print(action.text, markup=False, soft_wrap=True)
        for result in problems:
            err.print(f"{result.action.text}: {result.problem}", style="red", markup=False, soft_wrap=True)
    if problems:
        raise typer.Exit(1)


def _scope(*, system: bool) -> Scope:
    return "system" if system else "user"


def _say_commands(written: Sequence[Path], commands: Sequence[str]) -> None:
    for path in written:
        err.print(f"written: {path}", markup=False, soft_wrap=True)
    if commands:
        err.print("Now give these commands:")
    for command in commands:
        out.print(command, markup=False, soft_wrap=True)
