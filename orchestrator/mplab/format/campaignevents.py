"""The events of a campaign, in ``events.jsonl`` of its directory: one model for each kind.

The models are in the order in which their events usually occur. `mplab.format.events` reads and writes the log.
"""

from typing import Literal

from pydantic import Field

from mplab.format.campaign import CellCounts, Job
from mplab.format.events import Event
from mplab.format.record import Text, Whole


class CampaignEvent(Event):
    """An event of a campaign: one line of its ``events.jsonl``. Each kind of event has its own model."""


class CampaignPlanned(CampaignEvent):
    """First event of a campaign: it has been planned, with these jobs."""

    name: str
    title: str
    jobs: tuple[Job, ...]


class CampaignStarted(CampaignEvent):
    """The campaign was started or resumed: jobs start from now on."""

    ends_by: float | None = None
    """Unix seconds by which the campaign must end."""


class JobStarted(CampaignEvent):
    """A try at a job starts."""

    job: str
    run: str
    """Name of the run directory."""
    number: Whole = Field(validation_alias="try", serialization_alias="try")
    """Number of the try, from 1."""


class JobEnded(CampaignEvent):
    """A try at a job has ended. The job waits for its next try, unless `JobFinished` follows."""

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
    """A try has shown that the phones, routers and servers that it used work (`good`), or that one of them fails."""

    resources: tuple[str, ...]
    good: bool


class ResourceRests(CampaignEvent):
    """A phone, router, server or lab failed repeatedly, so the campaign does not use it before `until`: it rests."""

    resource: str
    until: float
    """Unix seconds."""
    reason: Text = ""


class ResourceQuarantined(CampaignEvent):
    """A phone, router, server or lab is quarantined: it stays unused until a user releases it."""

    resource: str
    reason: Text = ""


class ResourceReleased(CampaignEvent):
    """A user released a resource from rest or quarantine (``mplab campaign release``)."""

    resource: str


class JobCompared(CampaignEvent):
    """The run of a job was judged by its budgets and earlier runs; `passed`: it meets all budgets and is not worse."""

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
    """A message to a receiver was sent, or could not be sent."""

    kind: str = ""
    to: str = ""
    ok: bool = False
    error: Text = ""


class CampaignPaused(CampaignEvent):
    """A user paused the campaign (``mplab campaign pause``): its runs pause after their current cells."""


class CampaignContinued(CampaignEvent):
    """A user continued the paused campaign (``mplab campaign continue``)."""


class CampaignCut(CampaignEvent):
    """Jobs were left out because they would not end within the campaign's time limit."""

    reason: Text = ""
    jobs: tuple[str, ...] = ()


class Tidied(CampaignEvent):
    """A retention rule was applied to a run: its captures were compressed or removed, or the run was removed."""

    text: Text = ""
    freed_bytes: Whole = 0
    problem: Text = ""


class CampaignInterrupted(CampaignEvent):
    """The campaign ended before its jobs were finished. It can be resumed."""

    reason: Text = ""


class CampaignFinished(CampaignEvent):
    """Every job is finished."""
