"""Options and arguments that the verbs of ``mplab nightly`` share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from mplab.base.errors import InputError
from mplab.campaign.directory import CampaignDirectory
from mplab.campaign.file import Campaign, load_campaign
from mplab.format.plan import Plan
from mplab.run.planning import load, plan_experiment
from mplab.userfiles.experiment import Experiment

CAMPAIGNS = Path("campaigns")

CampaignsOption = Annotated[
    Path,
    typer.Option("--campaigns", help="Folder that holds the campaigns.", envvar="MPLAB_CAMPAIGNS", show_default=True),
]
CampaignArgument = Annotated[
    str,
    typer.Argument(
        help="Campaign directory, or the beginning or end of its name; the newest campaign by default.",
        show_default=False,
    ),
]
CampaignFileArgument = Annotated[Path, typer.Argument(help="Campaign file (YAML).", show_default=False)]


def find_campaign(name: str, campaigns: Path) -> CampaignDirectory:
    """Return the campaign directory for `name`: a path, the start or end of a name in `campaigns`, "" for the newest.

    Raises:
        InputError: no campaign matches, or more than one.
    """
    if name and (Path(name) / "campaign.json").is_file():
        return CampaignDirectory.open(Path(name))
    found = sorted(path.parent for path in campaigns.glob("*/campaign.json"))
    if not found:
        raise InputError(f"{campaigns}: no campaign in it; 'mplab nightly FILE' makes one, --campaigns names a folder")
    matches = [path for path in found if path.name.startswith(name) or path.name.endswith(name)]
    if not name or len(matches) == 1:
        return CampaignDirectory.open(found[-1] if not name else matches[0])
    names = ", ".join(path.name for path in (matches or found)[-5:])
    what = "several campaigns are" if matches else "no campaign is"
    raise InputError(f"{campaigns}: {what} called {name!r}; there are: {names}")


def campaigns_in(folder: Path) -> Iterator[CampaignDirectory]:
    """Yield all campaigns of a folder, oldest first. Raises InputError."""
    for path in sorted(folder.glob("*/campaign.json")):
        yield CampaignDirectory.open(path.parent)


def read_campaign(file: Path, runs: Path) -> Campaign:
    """Read a campaign; durations are estimated from the runs in a folder. Raises InputError, LabNotReadyError."""

    def planned(experiment: Experiment) -> Plan:
        return plan_experiment(experiment, runs).plan

    return load_campaign(file, load=load, plan=planned)
