"""The events of a run, in ``events.jsonl`` of its directory: one model for each kind, in the order of a run.

`mplab.format.events` has the log.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from mplab.format.cell import Outcome
from mplab.format.events import Event
from mplab.format.manifest import GitRecord
from mplab.format.plan import CellSpec, Plan, SkippedTransport
from mplab.format.record import OMIT_EMPTY, Settings, Text, Whole


class RunEvent(Event):
    """An event of a run."""


class RunPlanned(RunEvent):
    """The plan: the first event."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()


class DeadlineSet(RunEvent):
    """When the run must have ended."""

    ends_by: float
    """Unix seconds."""


class RunStarted(RunEvent):
    """Cells are run from now on."""

    cells: Whole = 0
    """Number of those that are not complete."""


class RunResumed(RunEvent):
    """A run that was interrupted goes on; orders from before are void."""

    complete: Whole = 0
    """Number of cells that stay complete."""
    again: tuple[str, ...] = ()
    """Cells that were complete, and get new attempts."""
    git: Annotated[GitRecord | None, OMIT_EMPTY] = None
    """The checkout, when it is not the one that the run began with."""


class LabUp(RunEvent):
    """The lab is up; further keys are what its parts report: ``nodes``, ``routers``, ``phone``, ``containers``."""

    model_config = ConfigDict(extra="allow")


class CellStarted(RunEvent):
    """An attempt at a cell begins."""

    cell: str
    attempt: Whole = 1


class CellStep(RunEvent):
    """A step of a cell begins."""

    cell: str = ""
    step: str


class LabRestored(RunEvent):
    """Programs of the lab had ended and were started again."""

    cell: str = ""
    programs: tuple[Text, ...] = ()
    """One sentence for each."""


class PhoneRecovered(RunEvent):
    """The phone works again after a failed attempt."""

    cell: str = ""
    attempt: Whole = 0
    by: str = ""
    """The rung of the recovery ladder that helped."""


class CellRetried(RunEvent):
    """An attempt was not ok and is made again."""

    cell: str = ""
    attempt: Whole = 0
    reason: Text = ""


class CellFinished(RunEvent):
    """A cell is complete."""

    cell: str
    outcome: Outcome
    reasons: tuple[Text, ...] = ()
    duration_s: float = 0.0


class IntervalChecked(RunEvent):
    """The intervals were looked at between two blocks."""

    blocks: Whole = 0
    """Number of those that are complete."""
    enough: bool = False
    text: Text = ""
    duration_s: float = 0.0


class HookFailed(RunEvent):
    """A command of a hook around the run failed."""

    hook: str = ""
    reason: Text = ""


class PauseAsked(RunEvent):
    """An order of ``mplab pause``."""


class ContinueAsked(RunEvent):
    """An order of ``mplab continue``."""


class RunPaused(RunEvent):
    """No further cell begins until the run is continued."""


class RunContinued(RunEvent):
    """A paused run goes on."""


class RunCut(RunEvent):
    """The run ends before its plan is done, by its own rules."""

    reason: Text = ""
    cells: tuple[str, ...] = ()
    """Those that are left out."""
    interval: Annotated[Settings, OMIT_EMPTY] = Field(default_factory=dict)
    """The intervals that were narrow enough."""


class RunInterrupted(RunEvent):
    """The run ended before its plan was done, and can be resumed."""

    reason: Annotated[Text, OMIT_EMPTY] = ""


class RunFinished(RunEvent):
    """Nothing is left to run."""

    outcomes: dict[str, Whole] = Field(default_factory=dict)


def planned_event(plan: Plan) -> RunPlanned:
    """Return the event of a plan."""
    return RunPlanned(cells=plan.cells, estimate_s=plan.estimate_s, skipped=plan.skipped)
