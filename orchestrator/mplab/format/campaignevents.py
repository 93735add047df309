"""The events of a campaign, in ``events.jsonl`` of its directory: one model for each kind, in the order of a campaign.

The log itself is in `mplab.format.events`.
"""

from typing import Literal

from pydantic import Field

from mplab.format.campaign import CellCounts, Job
from mplab.format.events import Event
from mplab.format.record import Text, Whole


class CampaignEvent(Event):
    """An event of a campaign."""


class CampaignPlanned(CampaignEvent):
    """The campaign has been planned: its first event, with all jobs."""

    name: str
    title: str
    jobs: tuple[Job, ...]


class CampaignStarted(CampaignEvent):
    """Jobs start from now on, in a new or a resumed campaign."""

    ends_by: float | None = None
    """Unix seconds by which the campaign must end."""


class JobStarted(CampaignEvent):
    """A try of a job starts."""

    job: str
    run: str
    """Name of the run directory."""
    number: Whole = Field(validation_alias="try", serialization_alias="try")
    """Number of the try, from 1."""


class JobEnded(CampaignEvent):
    """A try of a job has ended. The job waits for the next try, or `JobFinished` follows."""

    job: str
    run: str = ""
    code: Whole
    """Exit code; negative: the signal that killed it."""
    reason: Text = ""
    """Reason why the try failed; "": it did not fail."""
    blamed: bool = True
    """The try counts against the job's limit of tries."""
    cells: CellCounts = CellCounts()
    number: Whole = Field(0, validation_alias="try", serialization_alias="try")


class ResourceUsed(CampaignEvent):
    """A try has shown whether the resources that it used (phones, routers, servers) work: `good`."""

    resources: tuple[str, ...]
    good: bool


class ResourceRests(CampaignEvent):
    """A phone, router, server or lab rests: it is not used before `until`."""

    resource: str
    until: float
    """Unix seconds."""
    reason: Text = ""


class ResourceQuarantined(CampaignEvent):
    """A resource is quarantined: it stays unused until a user releases it."""

    resource: str
    reason: Text = ""


class ResourceReleased(CampaignEvent):
    """A resource is usable again: ``mplab nightly release``."""

    resource: str


class JobCompared(CampaignEvent):
    """The run of a job was compared with earlier ones, or exceeds a budget."""

    job: str
    passed: bool
    text: Text = ""


class JobFinished(CampaignEvent):
    """A job is over: it has no further tries."""

    job: str
    state: Literal["done", "failed", "left out"]
    reason: Text = ""


class DiskLow(CampaignEvent):
    """The disk has too little space for runs, so runs wait."""

    free_bytes: Whole = 0
    reason: Text = ""


class DiskEnough(CampaignEvent):
    """The disk has enough space again."""

    free_bytes: Whole = 0


class Notified(CampaignEvent):
    """A message was sent, or sending it failed."""

    kind: str = ""
    to: str = ""
    ok: bool = False
    error: Text = ""


class CampaignPaused(CampaignEvent):
    """``mplab nightly pause``: runs pause after their current cells."""


class CampaignContinued(CampaignEvent):
    """``mplab nightly continue``: a paused campaign continues."""


class CampaignCut(CampaignEvent):
    """Jobs were left out because they would not end in time."""

    reason: Text = ""
    jobs: tuple[str, ...] = ()


class Tidied(CampaignEvent):
    """The retention rules were applied to a run."""

    text: Text = ""
    freed_bytes: Whole = 0
    problem: Text = ""


class CampaignInterrupted(CampaignEvent):
    """The campaign ended before its jobs were finished. It can be resumed."""

    reason: Text = ""


class CampaignFinished(CampaignEvent):
    """Every job is finished."""
