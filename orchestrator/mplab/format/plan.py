"""Plan of a run: its cells in their order."""

from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from mplab.format.record import CONFIG, CellId, RecordName, Whole, label_of

RecordLabel = Annotated[RecordName, BeforeValidator(label_of)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CellSpec:
    """One cell of the plan. Scenario and transport are identified by their labels."""

    id: CellId
    """``0007-web-mptcp-baseline-r2``."""
    index: Whole = 0
    """Position in the order of the run, from 1."""
    block: Whole = 0
    """Number of the block, from 1; block r holds repetition r of every combination."""
    scenario: RecordLabel
    transport: RecordLabel
    link: RecordLabel
    repetition: Whole = 0
    """Number of the repetition, from 1."""
    seed: Whole = 0
    """Seed of all random numbers in the cell, 0…2^32-1. All transports get the same seed, so results are comparable."""
    hash: str = ""
    """SHA-256, hex, of everything that determines the cell; "": written by a version that did not hash it."""


@dataclass(frozen=True, config=CONFIG)
class SkippedTransport:
    """Transport that this lab cannot run."""

    transport: RecordLabel | Literal[""] = ""
    """Label of the transport."""
    reason: str = ""


@dataclass(frozen=True, config=CONFIG)
class Plan:
    """Cells of a run, in order."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()
