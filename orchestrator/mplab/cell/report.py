"""Define the report of one attempt at a cell. It becomes the ``cell.json`` of the cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from mplab.format.cell import (
    AttemptRecord,
    CaptureRecord,
    CellHost,
    CellRecord,
    CongestionControlRecord,
    LinkProof,
    Outcome,
    TransportProof,
)
from mplab.format.plan import CellSpec


@dataclass
class CellReport:
    """Report on an attempt; the steps fill the report in until the cell ends. See `CellRecord` for the fields."""

    spec: CellSpec
    attempt: int
    started: datetime
    outcome: Outcome = "failed"
    reasons: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    timings_s: dict[str, float] = field(default_factory=dict)
    links: dict[str, LinkProof] = field(default_factory=dict)
    proof: TransportProof = field(default_factory=TransportProof)
    captures: list[CaptureRecord] = field(default_factory=list)
    congestion_control: CongestionControlRecord = field(default_factory=CongestionControlRecord)
    host: CellHost = field(default_factory=CellHost)
    phone: dict[str, str | Sequence[str]] = field(default_factory=dict)
    clock_offset_ms: float = 0.0

    @property
    def duration_s(self) -> float:
        """Return the total duration of all steps, in seconds."""
        return sum(self.timings_s.values())

    @property
    def reason(self) -> str:
        """Return all reasons why the cell is not ok, in one line."""
        return "; ".join(self.reasons)

    def as_attempt(self) -> AttemptRecord:
        """Return the entry for this attempt in ``attempts`` of ``cell.json``."""
        return AttemptRecord(attempt=self.attempt, outcome=self.outcome, reason=self.reason)

    def record(self, attempts: Sequence[AttemptRecord]) -> CellRecord:
        """Return the content of ``cell.json``; `attempts` are all attempts at the cell, this one included."""
        return CellRecord(
            id=self.spec.id,
            spec=self.spec,
            outcome=self.outcome,
            reasons=tuple(self.reasons),
            warnings=tuple(self.warnings),
            attempt=self.attempt,
            attempts=tuple(attempts),
            started=self.started.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            timings_s=self.timings_s,
            links=self.links,
            proof=self.proof,
            captures=tuple(self.captures),
            congestion_control=self.congestion_control,
            host=self.host,
            clock_offset_ms=self.clock_offset_ms,
            phone={name: fact if isinstance(fact, str) else [*fact] for name, fact in self.phone.items()},
        )
