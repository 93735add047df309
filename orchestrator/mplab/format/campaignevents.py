"""The events of a campaign, in ``events.jsonl`` of its directory: one model for each kind, in the order of a campaign.

`mplab.format.events` has the log.
"""

from typing import Literal

from pydantic import Field

from mplab.format.campaign import CellCounts, Job
from mplab.format.events import Event
from mplab.format.record import Text, Whole


class CampaignEvent(Event):
    """An event of a campaign."""


class CampaignPlanned(CampaignEvent):
    """The jobs: the first event."""

    name: str
    title: str
    jobs: tuple[Job, ...]


class CampaignStarted(CampaignEvent):
    """Jobs are begun from now on; also of a campaign that goes on."""

    ends_by: float | None = None
    """Unix seconds: when it must have ended."""


class JobStarted(CampaignEvent):
    """A try at a job begins."""

    job: str
    run: str
    """Name of the run directory."""
    number: Whole = Field(validation_alias="try", serialization_alias="try")
    """From 1."""


class JobEnded(CampaignEvent):
    """A try at a job is over. The job waits for the next one, or `JobFinished` follows."""

    job: str
    run: str = ""
    code: Whole
    """Exit code; negative: the signal that killed it."""
    reason: Text = ""
    """Why it was not good."""
    blamed: bool = True
    """It counts among the tries of the job."""
    cells: CellCounts = CellCounts()
    number: Whole = Field(0, validation_alias="try", serialization_alias="try")


class ResourceUsed(CampaignEvent):
    """A try has shown whether its phones, routers and servers work."""

    resources: tuple[str, ...]
    good: bool


class ResourceRests(CampaignEvent):
    """A phone, router, server or lab is not used for a while."""

    resource: str
    until: float
    """Unix seconds."""
    reason: Text = ""


class ResourceQuarantined(CampaignEvent):
    """It is not used again until it is released."""

    resource: str
    reason: Text = ""


class ResourceReleased(CampaignEvent):
    """It is used again: an order of ``mplab nightly release``."""

    resource: str


class JobCompared(CampaignEvent):
    """The run of a job was compared with earlier ones, or a budget is broken."""

    job: str
    passed: bool
    text: Text = ""


class JobFinished(CampaignEvent):
    """Nothing more is done for a job."""

    job: str
    state: Literal["done", "failed", "left out"]
    reason: Text = ""


class DiskLow(CampaignEvent):
    """Too little space for runs: they wait."""

    free_bytes: Whole = 0
    reason: Text = ""


class DiskEnough(CampaignEvent):
    """There is space again."""

    free_bytes: Whole = 0


class Notified(CampaignEvent):
    """A message was sent, or could not be."""

    kind: str = ""
    to: str = ""
    ok: bool = False
    error: Text = ""


class CampaignPaused(CampaignEvent):
    """Runs wait after their current cells: an order of ``mplab nightly pause``."""


class CampaignContinued(CampaignEvent):
    """A paused campaign goes on: an order of ``mplab nightly continue``."""


class CampaignCut(CampaignEvent):
    """Jobs are left out because they would not end in time."""

    reason: Text = ""
    jobs: tuple[str, ...] = ()


class Tidied(CampaignEvent):
    """The retention rules were applied to a run."""

    text: Text = ""
    freed_bytes: Whole = 0
    problem: Text = ""


class CampaignInterrupted(CampaignEvent):
    """The campaign ended before its jobs, and can be resumed."""

    reason: Text = ""


class CampaignFinished(CampaignEvent):
    """Every job is finished."""
