"""The events of a run, in ``events.jsonl`` of its directory: one model for each.

The log itself is `mplab.format.events`. An event that is not named here has no field that mplab reads.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, ValidationError

from mplab.base.errors import InputError
from mplab.format.cell import Outcome
from mplab.format.plan import CellSpec, SkippedTransport
from mplab.format.record import Record, Settings, Whole

END_OF_TIME_S = 1e11
"""Later times have no date."""


class RunEvent(Record):
    """Any event."""

    t: Annotated[float, Field(ge=0, lt=END_OF_TIME_S)]
    """Unix seconds."""
    event: str


class RunPlanned(RunEvent):
    """The plan: the first event."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()


class RunStarted(RunEvent):
    """Cells are run from now on; `again`: cells that a resumed run takes back."""

    again: tuple[str, ...] = ()


class RunCut(RunEvent):
    """The run ends before its plan is done, by its own rules."""

    reason: str = ""
    cells: tuple[str, ...] = ()
    """Those that are left out."""
    interval: Settings = Field(default_factory=dict)
    """The intervals that were narrow enough."""


class RunFinished(RunEvent):
    """Nothing is left to run."""

    outcomes: dict[str, Whole] = Field(default_factory=dict)


class RunInterrupted(RunEvent):
    """The run ended before its plan was done, and can be resumed."""

    reason: str = ""


class RunPaused(RunEvent):
    """No further cell begins until the run is continued."""


class RunContinued(RunEvent):
    """A paused run goes on."""


class PauseAsked(RunEvent):
    """An order of ``mplab pause``."""


class ContinueAsked(RunEvent):
    """An order of ``mplab continue``."""


class DeadlineSet(RunEvent):
    """When the run must have ended, Unix seconds."""

    ends_by: float


class CellStarted(RunEvent):
    """An attempt at a cell begins."""

    cell: str
    attempt: Whole = 1


class CellStep(RunEvent):
    """A step of a cell begins."""

    cell: str = ""
    step: str


class CellRetried(RunEvent):
    """An attempt was not ok and is made again."""

    cell: str = ""
    attempt: Whole = 0
    reason: str = ""


class CellFinished(RunEvent):
    """A cell is complete."""

    cell: str
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    duration_s: float = 0.0


KINDS: Mapping[str, type[RunEvent]] = {
    "run_planned": RunPlanned,
    "run_started": RunStarted,
    "run_resumed": RunStarted,
    "run_cut": RunCut,
    "run_finished": RunFinished,
    "run_interrupted": RunInterrupted,
    "run_paused": RunPaused,
    "run_continued": RunContinued,
    "pause_asked": PauseAsked,
    "continue_asked": ContinueAsked,
    "deadline_set": DeadlineSet,
    "cell_started": CellStarted,
    "cell_step": CellStep,
    "cell_retried": CellRetried,
    "cell_finished": CellFinished,
}
"""Name of an event → its model; `RunEvent` for every other."""


def parse_event(record: Mapping[str, object]) -> RunEvent:
    """Return the event of a line of ``events.jsonl``. Raises InputError: it lacks a field, or has a wrong one."""
    model = KINDS.get(str(record.get("event")), RunEvent)
    try:
        return model.model_validate(record)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"event {record.get('event')}: {where}: {first['msg']}") from None
