"""``manifest.json`` and ``cell.json`` (docs/design.md), each written once."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, ValidationError, model_serializer

from mplab.base.errors import InputError
from mplab.base.files import write_new
from mplab.format.plan import CellSpec, Plan, SkippedTransport
from mplab.userfiles.experiment import Experiment

Outcome = Literal["ok", "invalid", "failed"]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ScenarioRecord(_Record):
    """A scenario of the experiment; quantities in `parameters` are text with units."""

    label: str
    name: str
    parameters: dict[str, Any]


class TransportRecord(_Record):
    """A transport of the experiment."""

    label: str
    name: str
    options: dict[str, Any]
    colour: str
    marker: str
    title: str
    paths: tuple[str, ...] | None = None
    """Interfaces that one connection uses while no path fails; None: of an mplab that did not write them."""
    sessions: bool | None = None
    """Application connections share lasting connections to the proxy, one per interface; None: as of `paths`."""


class DirectionRecord(_Record):
    """One direction of a link, as ``linkem`` takes it; `rate_kbps` 0: unlimited. `trace`: its name and SHA-256."""

    rate_kbps: float | None = None
    delay_ms: float
    jitter_ms: float
    jitter_distribution: str | None = None
    loss_percent: float | None = None
    loss_model: dict[str, float] | None = None
    reorder_percent: float | None = None
    duplicate_percent: float | None = None
    queue: dict[str, int | float | str]
    trace: dict[str, str] | None = None

    @model_serializer(mode="wrap")
    def _set(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without what is not set."""
        written: dict[str, Any] = handler(self)
        return {name: value for name, value in written.items() if value is not None}


class PathRecord(_Record):
    """Both directions of a path."""

    down: DirectionRecord
    up: DirectionRecord


class LinkRecord(_Record):
    """A link condition of the experiment; paths by interface."""

    name: str
    title: str
    source: str
    paths: dict[str, PathRecord]
    core_rtt_ms: float = 0.0
    changes: tuple[dict[str, Any], ...] = ()
    """What happens while a scenario runs: `mplab.userfiles.changes.Moment.to_json`."""


class ToleranceRecord(_Record):
    """Percent of what was asked."""

    rtt_percent: float
    rate_percent: float


class ClaimRecord(_Record):
    """What a paper says; see `mplab.userfiles.experiment.Claim`."""

    text: str
    source: str
    metric: str
    transport: str
    against: tuple[str, ...]
    gain_percent: tuple[float, float]
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    against_link: str = ""


class LimitRecord(_Record):
    """A number with the unit that the file has."""

    value: float
    unit: str


class BudgetRecord(_Record):
    """What a metric must keep to; see `mplab.userfiles.budgets.Budget`."""

    metric: str
    transport: str = ""
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    statistic: str = "median"
    at_most: LimitRecord | None = None
    at_least: LimitRecord | None = None
    no_worse_than_percent: float | None = None


class ExperimentRecord(_Record):
    """The experiment, fully resolved."""

    name: str
    title: str
    seed: int
    repetitions: int
    scenarios: tuple[ScenarioRecord, ...]
    transports: tuple[TransportRecord, ...]
    links: tuple[LinkRecord, ...]
    tolerance: ToleranceRecord
    capture: Literal["headers", "payload", "off"]
    congestion_control: str
    retries: int
    cell_timeout_s: float
    matrix: dict[str, tuple[dict[str, tuple[str, ...]], ...]] = Field(default_factory=dict)
    """``include`` and ``exclude``: patterns of labels by factor; empty: every combination is run."""
    grouped_by: tuple[str, ...] = ()
    ending: dict[str, Any] = Field(default_factory=dict)
    """``max_s``, ``until``, ``failures``, ``interval``, as far as they are given."""
    hooks: dict[str, Any] = Field(default_factory=dict)
    """Commands by when they are run, and ``timeout``; empty: none."""
    notes: str = ""
    tags: tuple[str, ...] = ()
    claims: tuple[ClaimRecord, ...] = ()
    budgets: tuple[BudgetRecord, ...] = ()
    extends: tuple[str, ...] = ()
    """Names of the files that were extended, the nearest one first."""
    variables: dict[str, Any] = Field(default_factory=dict)
    """With their values in force."""
    given: tuple[str, ...] = ()
    """Those of them that were set from outside of the file."""
    files: dict[str, str] | None = None
    """Files that cells depend on: path → SHA-256, hex. None: of an mplab that did not hash them."""


class PlanRecord(_Record):
    """The plan; see `mplab.format.plan.Plan`."""

    cells: tuple[CellSpec, ...]
    estimate_s: float
    skipped: tuple[SkippedTransport, ...] = ()


class HostRecord(_Record):
    """The machine that the run was on."""

    kernel: str
    cpus: int
    memory_bytes: int
    distribution: str
    mptcp: dict[str, str]
    """The net.mptcp sysctls."""


class GitRecord(_Record):
    """The checkout that the run was made with; no commit: not a checkout."""

    commit: str | None
    dirty: bool


class Manifest(_Record):
    """``manifest.json``."""

    format: Literal[1] = 1
    run_id: str
    experiment: ExperimentRecord
    plan: PlanRecord
    lab: dict[str, Any]
    host: HostRecord
    versions: dict[str, Any]
    git: GitRecord
    started: str
    """ISO 8601, UTC."""

    @classmethod
    def of(
        cls,
        *,
        run_id: str,
        experiment: Experiment,
        plan: Plan,
        lab: dict[str, Any],
        host: HostRecord,
        versions: dict[str, Any],
        git: GitRecord,
        started: str,
    ) -> "Manifest":
        """The manifest of a run that is about to start."""
        return cls(
            run_id=run_id,
            experiment=ExperimentRecord.model_validate(experiment.to_json()),
            plan=PlanRecord(cells=plan.cells, estimate_s=plan.estimate_s, skipped=plan.skipped),
            lab=lab,
            host=host,
            versions=versions,
            git=git,
            started=started,
        )

    def to_plan(self) -> Plan:
        """The plan of the run."""
        return Plan(self.plan.cells, self.plan.estimate_s, self.plan.skipped)


class AttemptRecord(_Record):
    """One attempt at a cell."""

    attempt: int
    outcome: Outcome
    reason: str = ""


class LinkAsked(_Record):
    """What an interface's path should be; None: unlimited."""

    down_kbps: float | None
    up_kbps: float | None
    rtt_ms: float
    loss_percent: float


class LinkMeasured(_Record):
    """What the probe found; None: not measured."""

    down_kbps: float | None = None
    up_kbps: float | None = None
    rtt_ms_median: float | None = None
    rtt_ms_iqr: float | None = None
    loss_percent: float | None = None
    loss_sent: int | None = None


class LinkProof(_Record):
    """Asked and measured, side by side; `measured` None: the probe did not run."""

    asked: LinkAsked
    measured: LinkMeasured | None = None
    where: str = "linkem"


class TransportProof(_Record):
    """Why the transport is known to be the one that was asked."""

    active: dict[str, Any] = {}
    counters: dict[str, Any] = {}
    subflows: dict[str, Any] = {}
    session: dict[str, Any] = {}
    """What the paths of an MPFlex session carried, from both logs; {} with other transports."""


class CaptureRecord(_Record):
    """One capture file."""

    file: str
    interface: str
    node: str
    packets: int
    dropped: int
    snaplen: int
    headers_only: bool


class CongestionControlRecord(_Record):
    """The algorithm in force at each sender; None: not known."""

    agent: str | None = None
    proxy: str | None = None
    origin: str | None = None


class CellHost(_Record):
    """How busy the host was."""

    load_before: float | None = None
    load_after: float | None = None
    cpu_busy_percent: float | None = None
    busy_percent: float | None = None
    """This and what follows: while the scenario ran (`mplab.base.load`)."""
    free_cpus: float | None = None
    pressure_percent: float | None = None
    steal_percent: float | None = None
    needed_cpus: float | None = None
    overloaded: bool = False


class CellRecord(_Record):
    """``cell.json``."""

    format: Literal[1] = 1
    id: str
    spec: CellSpec
    outcome: Outcome
    reasons: tuple[str, ...] = ()
    """Sentences; empty when ok."""
    warnings: tuple[str, ...] = ()
    """What disturbed the cell without making it invalid."""
    attempt: int = 1
    attempts: tuple[AttemptRecord, ...] = ()
    started: str
    """ISO 8601, UTC."""
    timings_s: dict[str, float] = {}
    links: dict[str, LinkProof] = {}
    proof: TransportProof = TransportProof()
    captures: tuple[CaptureRecord, ...] = ()
    congestion_control: CongestionControlRecord = CongestionControlRecord()
    host: CellHost = CellHost()
    clock_offset_ms: float = 0.0
    phone: dict[str, Any] = {}


Model = TypeVar("Model", bound=BaseModel)


def utc_now() -> str:
    """Now: ``2026-03-01T12:00:00Z``."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write_record(path: Path, record: BaseModel) -> None:
    """Write `record` as JSON, once and whole.

    Raises:
        MplabError: the file exists already, or "disk full: …".
    """
    write_new(path, (record.model_dump_json(indent=1) + "\n").encode())


def read_record(path: Path, model: type[Model]) -> Model:
    """The record in `path`. Raises InputError: not there, or not such a record."""
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{path}: not a {model.__name__} of format 1: {place}: {first['msg']}") from error
