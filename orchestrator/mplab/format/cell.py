"""``cell.json``: what is known about one cell, written once."""

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from mplab.format.plan import CellSpec
from mplab.format.record import CELL_ID, LENIENT, CellId, Quantity, Record, Settings, Whole, without_empty
from mplab.format.upgrades import upgrade_link_proof

Outcome = Literal["ok", "invalid", "failed"]


class AttemptRecord(Record):
    """One attempt at a cell."""

    attempt: Whole = 0
    outcome: Outcome
    reason: str = ""


class LinkAsked(Record):
    """The requested condition of an interface's path; None or 0 as a rate: unlimited."""

    down_kbps: Quantity = None
    up_kbps: Quantity = None
    rtt_ms: Quantity = None
    loss_percent: Quantity = None


class LinkMeasured(Record):
    """What the probe measured; None: not measured."""

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
    """Nothing in it: the probe did not run."""
    where: str = ""


class SubflowCount(Record):
    """Subflows over one interface that were established, and the bytes they carried."""

    established: Whole = 0
    bytes_up: Whole = 0
    bytes_down: Whole = 0


class SessionPath(Record):
    """Bytes of streams that one path of an MPFlex session carried, each once, and of copies."""

    bytes_up: Whole = 0
    bytes_down: Whole = 0
    copied_up: Whole = 0
    copied_down: Whole = 0


class SessionProof(Record):
    """What the paths of an MPFlex session carried, from the logs of both sides; empty with other transports."""

    paths: dict[str, SessionPath] = Field(default_factory=dict)
    events: tuple[Settings, ...] = ()
    """What happened to the paths, as the agent logged it."""

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        return without_empty(handler(self))


class TransportProof(Record):
    """Why the transport is known to be the requested one."""

    active: Settings = Field(default_factory=dict)
    counters: dict[str, Whole] = Field(default_factory=dict)
    """The phone's MPTCP counters, during the scenario."""
    subflows: dict[str, SubflowCount] = Field(default_factory=dict)
    """By interface."""
    session: Annotated[SessionProof, LENIENT] = SessionProof()


class CaptureRecord(Record):
    """One capture file."""

    file: str = ""
    interface: str = ""
    node: str = ""
    packets: Whole = 0
    dropped: Whole = 0
    snaplen: Whole = 0
    headers_only: bool = False


class CongestionControlRecord(Record):
    """The algorithm in force at each sender; None: not known."""

    agent: str | None = None
    proxy: str | None = None
    origin: str | None = None

    def known(self) -> dict[str, str]:
        """Return sender → algorithm, of those that are known."""
        senders = (("agent", self.agent), ("proxy", self.proxy), ("origin", self.origin))
        return {sender: name for sender, name in senders if name is not None}


class CellHost(Record):
    """How busy the host was."""

    load_before: Quantity = None
    load_after: Quantity = None
    cpu_busy_percent: Quantity = None
    busy_percent: Quantity = None
    """This and what follows: while the scenario ran (`mplab.base.load`)."""
    free_cpus: Quantity = None
    pressure_percent: Quantity = None
    steal_percent: Quantity = None
    needed_cpus: Quantity = None
    overloaded: bool = False


class CellRecord(Record):
    """``cell.json``."""

    format: Literal[1] = 1
    id: CellId
    spec: CellSpec
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    """Sentences; empty when ok."""
    warnings: tuple[str, ...] = ()
    """What disturbed the cell without making it invalid."""
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
    """Whether the folder of a cell can have this name."""
    return re.fullmatch(CELL_ID, name) is not None
