"""Compact result of a run for the page of the papers: ``docs/papers/results/EXPERIMENT.FORM.json``.

It has no captures, no host names and no paths, and is small enough to be kept with the source code.
"""

from typing import Annotated, Literal

from pydantic import Field

from mplab.format.finding import ClaimFinding
from mplab.format.record import CellId, Record, RecordName, RunId, Whole

RESULTS, FIGURES = "results", "figures"
"""Folders of the results and of their drawings."""

FileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


class ClaimResult(Record):
    """A claim of the experiment with its findings."""

    figure: str
    """Row of the catalogue."""
    text: str
    metric: str = ""
    transport: str = ""
    claimed: str = ""
    """Claimed range in words: ``gain 11 to 49 %``."""
    width: str = ""
    """Source of the width of the range: ``paper``, or ``ours: `` with the reason."""
    groups: Literal["most", "all"] = "most"
    """``most`` or ``all`` groups must agree with the claim."""
    found: tuple[ClaimFinding, ...] = ()
    """Without `values` and without correction, which is one over all results."""


class GroupResult(Record):
    """The values of all transports for one metric with its labels, in one scenario under one link condition."""

    scenario: RecordName
    link: RecordName
    metric: str
    unit: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    values: dict[str, dict[Whole, float]] = Field(default_factory=dict)
    """Transport → block → value of the cell."""


class FigureResult(Record):
    """A figure that was drawn for rows of the catalogue."""

    name: str
    """Name of the figure in ``mplab figures``."""
    drawing: FileName
    """Name of the drawing, without suffix."""
    title: str = ""
    caption: str = ""
    file: FileName | None = None
    """File in the folder ``figures``; None: the drawing is too large to be kept."""


class PaperResult(Record):
    """Compact result of one run of an experiment of the catalogue."""

    format: Literal[1] = 1
    experiment: RecordName
    form: Literal["quick", "full", "file"]
    """Form of the run; ``file``: the unchanged experiment file."""
    run: RunId
    started: str = ""
    """ISO 8601, UTC."""
    duration_s: float | None = None
    seed: Whole = 0
    repetitions: Whole = 0
    cells: dict[str, Whole] = Field(default_factory=dict)
    """Outcome → number of cells."""
    flagged: tuple[CellId, ...] = ()
    """Ok cells with warnings, or on an overloaded host."""
    not_ok: tuple[CellId, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    """mplab, its programs, the kernel and the browser."""
    ended: str = ""
    """Rule that ended the run before its plan was done; "": none did."""
    claims: tuple[ClaimResult, ...] = ()
    groups: tuple[GroupResult, ...] = ()
    figures: tuple[FigureResult, ...] = ()
