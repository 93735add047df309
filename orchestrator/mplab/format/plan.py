"""The plan of a run: its cells in their order."""

from typing import Annotated, Literal

from pydantic import BeforeValidator
from pydantic.dataclasses import dataclass

from mplab.format.record import CONFIG, CellId, RecordName, Whole
from mplab.format.upgrades import label_of

RecordLabel = Annotated[RecordName, BeforeValidator(label_of)]


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class CellSpec:
    """One cell: what is run once. Scenario and transport are named by their labels."""

    id: CellId
    """``0007-web-mptcp-baseline-r2``."""
    index: Whole = 0
    """Place in the order of the run, from 1."""
    block: Whole = 0
    """From 1; block r holds repetition r of every combination."""
    scenario: RecordLabel
    transport: RecordLabel
    link: RecordLabel
    repetition: Whole = 0
    """From 1."""
    seed: Whole = 0
    """Of all chance in the cell, 0…2^32-1; the same for all transports: they are compared like for like."""
    hash: str = ""
    """SHA-256, hex, of everything that determines the cell; "": of an mplab that did not hash it."""


@dataclass(frozen=True, config=CONFIG)
class SkippedTransport:
    """A transport that this lab cannot run."""

    transport: RecordLabel | Literal[""] = ""
    """Its label."""
    reason: str = ""


@dataclass(frozen=True, config=CONFIG)
class Plan:
    """The cells of a run, in order."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float = 0.0
    skipped: tuple[SkippedTransport, ...] = ()
