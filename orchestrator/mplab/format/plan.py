"""Plan of a run: its cells in their order."""

from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from mplab.format.record import CONFIG, CellId, RecordName, Whole, label_of

RecordLabel = Annotated[RecordName, BeforeValidator(label_of)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CellSpec:
    """One planned cell: a repetition of one combination of scenario, transport (both by label) and link condition."""

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
    """Transport that the lab cannot run, and the reason."""

    transport: RecordLabel | Literal[""] = ""
    """Label of the transport."""
    reason: str = ""


@dataclass(frozen=True, config=CONFIG)
class Plan:
    """Plan of a run: its cells in order, their estimated time, and the transports that are left out."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()
    chosen: bool = False
    """True: a user chose these cells among those of the experiment. Such a run is no baseline for other runs."""
