"""``cell.json``: the record of one cell, written once. ``scores.json``: its scores, which the analysis writes."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mplab.format.plan import CellSpec
from mplab.format.record import (
    CELL_ID,
    LENIENT,
    OMIT_EMPTY,
    OMIT_ZERO,
    CellId,
    Quantity,
    Record,
    Settings,
    Whole,
    upgrade_link_proof,
)

Outcome = Literal["ok", "invalid", "failed"]


class AttemptRecord(Record):
    """Outcome of one attempt at a cell."""

    attempt: Whole = 0
    outcome: Outcome
    reason: str = ""


class LinkAsked(Record):
    """Requested condition of an interface's path; None or 0 as a rate: unlimited."""

    down_kbps: Quantity = None
    up_kbps: Quantity = None
    rtt_ms: Quantity = None
    loss_percent: Quantity = None


class LinkMeasured(Record):
    """Condition of an interface's path, as measured by the probe; None: not measured."""

    down_kbps: Quantity = None
    up_kbps: Quantity = None
    rtt_ms_median: Quantity = None
    rtt_ms_iqr: Quantity = None
    loss_percent: Quantity = None
    loss_sent: Annotated[int | None, Field(ge=0, lt=2**63)] = None


class LinkProof(Record):
    """Requested and measured condition of a path."""

    asked: Annotated[LinkAsked, LENIENT] = LinkAsked()
    measured: Annotated[LinkMeasured, LENIENT] = LinkMeasured()
    """Empty: the probe did not run."""
    where: str = ""


class SubflowCount(Record):
    """Number of MPTCP subflows that were established over one interface, and the bytes that they carried."""

    established: Whole = 0
    bytes_up: Whole = 0
    bytes_down: Whole = 0


class SessionPath(Record):
    """Application bytes that one path of an MPFlex session carried.

    ``bytes_*`` counts each application byte once, ``copied_*`` counts the bytes that another path carried before.
    """

    bytes_up: Whole = 0
    bytes_down: Whole = 0
    copied_up: Whole = 0
    copied_down: Whole = 0


class SessionProof(Record):
    """Bytes that each path of an MPFlex session carried, from the logs of agent and proxy.

    Empty if the transport is not MPFlex.
    """

    paths: Annotated[dict[str, SessionPath], OMIT_EMPTY] = Field(default_factory=dict)
    events: Annotated[tuple[Settings, ...], OMIT_EMPTY] = ()
    """Events of the paths, as the agent logged them."""


class TransportProof(Record):
    """Evidence that the transport was the requested one."""

    active: Settings = Field(default_factory=dict)
    counters: dict[str, Whole] = Field(default_factory=dict)
    """MPTCP counters of the phone during the scenario."""
    origin_counters: dict[str, Whole] = Field(default_factory=dict)
    """MPTCP counters of the origin during the scenario; only on the direct route."""
    subflows: dict[str, SubflowCount] = Field(default_factory=dict)
    """Interface of the phone → subflows."""
    session: Annotated[SessionProof, LENIENT] = SessionProof()


class CaptureRecord(Record):
    """One capture file: its interface, and its numbers of captured and dropped packets."""

    file: str = ""
    interface: str = ""
    node: str = ""
    packets: Whole = 0
    dropped: Whole = 0
    snaplen: Whole = 0
    headers_only: bool = False


class CongestionControlRecord(Record):
    """Congestion control algorithm in use at each sender; None: unknown."""

    agent: str | None = None
    proxy: str | None = None
    origin: str | None = None

    def known(self) -> dict[str, str]:
        """Map sender → congestion control, without senders whose congestion control is unknown."""
        senders = (("agent", self.agent), ("proxy", self.proxy), ("origin", self.origin))
        return {sender: name for sender, name in senders if name is not None}


class CellHost(Record):
    """Load of the host before, during and after the cell."""

    load_before: Quantity = None
    load_after: Quantity = None
    cpu_busy_percent: Quantity = None
    busy_percent: Quantity = None
    """This field and the following ones: during the scenario (`mplab.base.load`)."""
    free_cpus: Quantity = None
    pressure_percent: Quantity = None
    steal_percent: Quantity = None
    needed_cpus: Quantity = None
    overloaded: bool = False


class CellRecord(Record):
    """Content of ``cell.json``: the record of one cell."""

    format: Literal[1] = 1
    id: CellId
    spec: CellSpec
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    """One sentence for each reason; empty: the cell is ok."""
    warnings: tuple[str, ...] = ()
    """Disturbances that did not make the cell invalid."""
    attempt: Whole = 1
    attempts: tuple[AttemptRecord, ...] = ()
    started: str = ""
    """ISO 8601, UTC."""
    timings_s: dict[str, float] = Field(default_factory=dict)
    links: dict[str, Annotated[LinkProof, BeforeValidator(upgrade_link_proof)]] = Field(default_factory=dict)
    proof: Annotated[TransportProof, LENIENT] = TransportProof()
    captures: tuple[CaptureRecord, ...] = ()
    congestion_control: Annotated[CongestionControlRecord, LENIENT] = CongestionControlRecord()
    host: Annotated[CellHost, LENIENT] = CellHost()
    clock_offset_ms: float = 0.0
    phone: Settings = Field(default_factory=dict)


def is_cell_id(name: str) -> bool:
    """Return whether `name` has the form of a cell's folder name."""
    return re.fullmatch(CELL_ID, name) is not None


FORMAT = 1


class ScoreRow(Record):
    """One value of a metric in a cell, with its unit."""

    metric: str
    value: float
    unit: str = ""
    labels: dict[str, str] = Field(default_factory=dict)
    repeat: Annotated[Whole, OMIT_ZERO] = 0
    """Number of the repetition inside the cell, from 1; 0: the cell has no repetitions."""


class Scores(Record):
    """Content of ``scores.json``: the scores of one cell."""

    format: int = FORMAT
    cell: str = ""
    values: tuple[ScoreRow, ...]
