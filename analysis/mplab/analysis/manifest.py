"""The records of a run directory, as far as the analysis reads them.

Fields that are not named here are ignored, and almost every named one may be absent: an older or newer
`mplab` wrote the directory, or the run has not come that far. Nothing in a run directory is trusted: names have the
form of names, numbers are finite, and text holds no control characters (`mplab.analysis.files.parse_json`).
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
"""Okabe & Ito's colours, which people with any colour vision can tell apart (black and yellow left out)."""

MARKERS = ("o", "s", "D", "^", "v", "P", "X", "*", "<", ">", "h", "p", "d", "8")
INTERFACE_TITLES = {"wlan0": "WiFi", "rmnet0": "LTE"}


class Record(BaseModel):
    """A frozen record that ignores what it does not know."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


def _label(value: object) -> object:
    """A cell's spec may hold the label itself or the object that carries it."""
    if isinstance(value, dict):
        return value.get("label") or value.get("name")
    return value


Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,80}$")]
"""Of an experiment, scenario, transport, link condition; file names are made of some. New ones are shorter."""

Label = Annotated[Name, BeforeValidator(_label)]
RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$")]
_CELL_ID = r"^[A-Za-z0-9_-]{1,240}$"
CellId = Annotated[str, StringConstraints(pattern=_CELL_ID)]
Whole = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""As tables hold it."""

Seconds = Annotated[float, Field(ge=0, le=1e9)]
Mapping = Annotated[dict[str, Any], BeforeValidator(lambda value: value if isinstance(value, dict) else {})]


class Scenario(Record):
    """One scenario of the experiment: ``name`` is the folder, ``label`` what this use of it is called."""

    label: Name
    name: Name
    parameters: Mapping = Field(default_factory=dict)


class Transport(Record):
    """One transport of the experiment, with its fixed look in every figure."""

    label: Name
    name: Name
    title: str = ""
    colour: str = ""
    marker: str = ""
    options: Mapping = Field(default_factory=dict)

    @property
    def single_path(self) -> bool:
        """Whether it uses one path alone: its registry name starts with ``sptcp``."""
        return self.name.startswith("sptcp")

    @property
    def session(self) -> bool:
        """Whether application connections share lasting connections to the proxy, one per interface: ``mpflex``."""
        return self.name == "mpflex"


class PathChange(Record):
    """A planned change of a path while a scenario runs."""

    at_s: Seconds = 0.0
    device: str = ""
    text: str = ""


class Link(Record):
    """One link condition; ``paths`` maps an interface to its ``down`` and ``up`` settings."""

    name: Name
    title: str = ""
    source: str = ""
    paths: dict[str, dict[str, Mapping]] = Field(default_factory=dict)
    core_rtt_ms: float = 0.0
    changes: tuple[PathChange, ...] = ()

    @property
    def story(self) -> str:
        """Its changes in words: ``15 s WiFi interface down; 30 s WiFi interface up``; empty without."""
        return "; ".join(
            f"{change.at_s:g} s {INTERFACE_TITLES.get(change.device, change.device)} {change.text}"
            for change in self.changes
        )

    def rtt_ms(self, interface: str) -> float | None:
        """Round-trip time of an idle path, both directions together; None where it is not said."""
        path = self.paths.get(interface) or {}
        delays = [(path.get(way) or {}).get("delay_ms") for way in ("down", "up")]
        numbers = [delay for delay in delays if isinstance(delay, int | float)]
        return float(sum(numbers)) if len(numbers) == len(delays) else None


class Claim(Record):
    """What a paper says that ``transport`` gains over the best of ``against``: a range, percent.

    ``scenarios`` and ``links`` say what it is about (empty: all), ``against_link`` under which condition the others
    are meant ("": the same).
    """

    text: str
    source: str = ""
    metric: str
    transport: str
    against: tuple[str, ...]
    gain_percent: tuple[float, float]
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    against_link: str = ""

    def is_about(self, scenario: str, link: str) -> bool:
        """Whether it says something of a scenario (by its label) under a link condition."""
        return (not self.scenarios or scenario in self.scenarios) and (not self.links or link in self.links)


class Limit(Record):
    """A number in the unit that the experiment file has; "" for a number alone."""

    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        """As a file would say it."""
        return f"{self.value:g} {self.unit}".rstrip()


class Budget(Record):
    """What a metric must keep to; what is empty does not narrow it."""

    metric: str
    transport: str = ""
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    labels: Mapping = Field(default_factory=dict)
    statistic: str = "median"
    at_most: Limit | None = None
    at_least: Limit | None = None
    no_worse_than_percent: float | None = None


class Experiment(Record):
    """The experiment, fully resolved."""

    name: Name
    title: str = ""
    seed: Whole = 0
    repetitions: Whole = 0
    scenarios: tuple[Scenario, ...] = ()
    transports: tuple[Transport, ...] = ()
    links: tuple[Link, ...] = ()
    tolerance: Mapping = Field(default_factory=dict)
    capture: Any = None
    congestion_control: Any = None
    retries: Whole = 0
    notes: str = ""
    tags: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    budgets: tuple[Budget, ...] = ()


class CellSpec(Record):
    """One planned cell."""

    id: CellId
    scenario: Label
    transport: Label
    link: Label
    repetition: Whole = 0
    index: Whole = 0
    block: Whole = 0
    seed: Whole = 0


class Skipped(Record):
    """A transport that the lab could not offer."""

    transport: Label | Literal[""] = ""
    reason: str = ""


class Plan(Record):
    """What was to be run."""

    cells: tuple[CellSpec, ...] = ()
    estimate_s: float | None = None
    skipped: tuple[Skipped, ...] = ()


class Manifest(Record):
    """``manifest.json``."""

    run_id: RunId
    experiment: Experiment
    plan: Plan = Plan()
    lab: Any = None
    host: Mapping = Field(default_factory=dict)
    versions: Mapping = Field(default_factory=dict)
    git: Mapping = Field(default_factory=dict)
    started: str = ""

    @property
    def same_clock(self) -> bool:
        """Phone and proxy have one clock: they are on one machine."""
        return isinstance(self.lab, dict) and self.lab.get("kind") == "virtual"

    def transports(self) -> tuple[Transport, ...]:
        """The transports in their order, each with a title, a colour and a marker of its own."""
        return tuple(_dressed(transport, i) for i, transport in enumerate(self.experiment.transports))


class Attempt(Record):
    """One try of a cell."""

    attempt: Whole = 0
    outcome: str = ""
    reason: str = ""


class LinkProof(Record):
    """A path of a cell: the quantities requested and measured; another type than a number is left out."""

    asked: Mapping = Field(default_factory=dict)
    measured: Mapping = Field(default_factory=dict)
    where: str = ""


class Capture(Record):
    """A capture file of a cell."""

    file: str = ""
    interface: str = ""
    packets: Whole = 0
    dropped: Whole = 0


class CellRecord(Record):
    """``cell.json``."""

    id: CellId
    spec: CellSpec
    outcome: str
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    attempt: Whole = 1
    attempts: tuple[Attempt, ...] = ()
    started: str = ""
    timings_s: dict[str, float] = Field(default_factory=dict)
    links: dict[str, LinkProof] = Field(default_factory=dict)
    proof: Mapping = Field(default_factory=dict)
    captures: tuple[Capture, ...] = ()
    congestion_control: Mapping = Field(default_factory=dict)
    host: Mapping = Field(default_factory=dict)
    phone: Mapping = Field(default_factory=dict)


def is_cell_id(name: str) -> bool:
    """Whether the folder of a cell can have this name."""
    return re.fullmatch(_CELL_ID, name) is not None


def tolerances(experiment: Experiment) -> dict[str, float]:
    """The accepted deviation of ``rtt`` and ``rate`` as fractions, where the manifest says them."""
    found = {kind: experiment.tolerance.get(f"{kind}_percent") for kind in ("rtt", "rate")}
    return {kind: value / 100 for kind, value in found.items() if isinstance(value, int | float)}


def interface_title(name: str) -> str:
    """``wlan0`` → ``WiFi (wlan0)``; an interface without a common name stays as it is."""
    return f"{INTERFACE_TITLES[name]} ({name})" if name in INTERFACE_TITLES else name


def _dressed(transport: Transport, position: int) -> Transport:
    colour = transport.colour if re.fullmatch(r"#[0-9A-Fa-f]{6}", transport.colour) else ""
    return transport.model_copy(
        update={
            "title": transport.title or transport.label,
            "colour": colour or PALETTE[position % len(PALETTE)],
            "marker": transport.marker if transport.marker in MARKERS else MARKERS[position % len(MARKERS)],
        }
    )
