"""The events of a run, in ``events.jsonl`` of its directory: one model for each kind.

The models are in the order in which their events usually occur. `mplab.format.events` reads and writes the log.
"""

from typing import Annotated

from pydantic import ConfigDict, Field

from mplab.format.cell import Outcome
from mplab.format.events import Event
from mplab.format.manifest import GitRecord
from mplab.format.plan import CellSpec, Plan, SkippedTransport
from mplab.format.record import OMIT_EMPTY, Settings, Text, Whole


class RunEvent(Event):
    """An event of a run: one line of its ``events.jsonl``. Each kind of event has its own model."""


class RunPlanned(RunEvent):
    """First event of a run: it has been planned, with these cells."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()
    machine: Annotated[str, OMIT_EMPTY] = ""
    """Machine that runs the cells (`mplab.base.lock.machine`); "": an older version did not record it."""


class DeadlineSet(RunEvent):
    """The time by which the run must end has been set."""

    ends_by: float
    """Unix seconds."""


class RunStarted(RunEvent):
    """The run was started or resumed: cells run from now on."""

    cells: Whole = 0
    """Number of cells that are not complete."""


class RunResumed(RunEvent):
    """An interrupted run was resumed. Earlier requests to pause or continue are void."""

    complete: Whole = 0
    """Number of cells that stay complete."""
    again: tuple[str, ...] = ()
    """Ids of cells that were complete, but run again."""
    git: Annotated[GitRecord | None, OMIT_EMPTY] = None
    """Checkout of this process, if it differs from that at the start of the run."""
    machine: Annotated[str, OMIT_EMPTY] = ""
    """Machine that runs the cells from now on."""


class LabUp(RunEvent):
    """The lab is up. The keys hold facts from the lab's devices: ``nodes``, ``routers``, ``phone``, ``containers``."""

    model_config = ConfigDict(extra="allow")


class CellStarted(RunEvent):
    """An attempt at a cell starts."""

    cell: str
    attempt: Whole = 1


class CellStep(RunEvent):
    """A step of a cell starts."""

    cell: str = ""
    step: str


class LabRestored(RunEvent):
    """Programs of the lab that had ended unexpectedly were restarted."""

    cell: str = ""
    programs: tuple[Text, ...] = ()
    """One sentence for each program."""


class PhoneRecovered(RunEvent):
    """The phone works again after a failed attempt."""

    cell: str = ""
    attempt: Whole = 0
    by: str = ""
    """Step of the recovery procedure that helped."""


class CellRetried(RunEvent):
    """An attempt at a cell was not ok, so the cell is attempted again."""

    cell: str = ""
    attempt: Whole = 0
    reason: Text = ""


class CellFinished(RunEvent):
    """A cell is complete: its outcome is final."""

    cell: str
    outcome: Outcome
    reasons: tuple[Text, ...] = ()
    duration_s: float = 0.0


class IntervalChecked(RunEvent):
    """The stop rule for confidence intervals was evaluated between two blocks; `enough`: it ends the run."""

    blocks: Whole = 0
    """Number of complete blocks."""
    enough: bool = False
    text: Text = ""
    duration_s: float = 0.0


class HookFailed(RunEvent):
    """A command of a hook around the run failed."""

    hook: str = ""
    reason: Text = ""


class PauseAsked(RunEvent):
    """A user requested a pause (``mplab pause``)."""


class ContinueAsked(RunEvent):
    """A user requested the end of a pause (``mplab continue``)."""


class RunPaused(RunEvent):
    """The run is paused: no further cell starts until it is continued."""


class RunContinued(RunEvent):
    """A paused run continues."""


class RunCut(RunEvent):
    """A stop rule ended the run before all cells were run."""

    reason: Text = ""
    cells: tuple[str, ...] = ()
    """Ids of the cells that were left out."""
    interval: Annotated[Settings, OMIT_EMPTY] = Field(default_factory=dict)
    """Confidence intervals that were narrow enough."""


class RunInterrupted(RunEvent):
    """The run was stopped before all cells were run. It can be resumed."""

    reason: Annotated[Text, OMIT_EMPTY] = ""


class RunFinished(RunEvent):
    """The run has finished: no cell is left to run."""

    outcomes: dict[str, Whole] = Field(default_factory=dict)


def planned_event(plan: Plan, machine: str = "") -> RunPlanned:
    """Return the event that records a run's plan, and the machine that executes it."""
    return RunPlanned(cells=plan.cells, estimate_s=plan.estimate_s, skipped=plan.skipped, machine=machine)
