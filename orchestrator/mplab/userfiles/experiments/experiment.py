"""Models of an experiment file as written, and of the experiment that it describes."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SkipValidation, WithJsonSchema, model_validator

from mplab.format.experiment import (
    Capture,
    Cells,
    CongestionControl,
    ExperimentBase,
    Factor,
    IntervalRule,
    ScenarioRecord,
    TimeOfDay,
    TransportRecord,
)
from mplab.format.experiment import ExperimentRecord as Record
from mplab.format.hooks import Hooks
from mplab.format.link import LinkCondition
from mplab.format.names import VIRTUAL_NAME, FileModel, Name, VariableName, format_number
from mplab.format.sockets import SocketSettings
from mplab.format.units import DurationS, Percent
from mplab.userfiles.experiments.budgets import BudgetsByMetric
from mplab.userfiles.experiments.claims import ClaimFile
from mplab.userfiles.experiments.transport import ROUTES, ReceiveBuffer, SocketsFile, ViaOptions
from mplab.userfiles.labs.labuse import LabUse
from mplab.userfiles.links.link import InlineLinkFile
from mplab.userfiles.links.pathfile import QUEUE_SCHEMA, QueueLength
from mplab.userfiles.strict.yaml import Document


def _one_or_more(value: object) -> object:
    """Return one pattern or a list of patterns as a tuple, which strict validation requires."""
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


_PATTERN = {"type": "string", "minLength": 1}
Patterns = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [_PATTERN, {"type": "array", "items": _PATTERN}]}),
]


Queues = Annotated[
    tuple[QueueLength, ...],
    BeforeValidator(_one_or_more),
    WithJsonSchema({"anyOf": [QUEUE_SCHEMA, {"type": "array", "items": QUEUE_SCHEMA}]}),
]


class CellsFile(FileModel):
    """A set of combinations of scenario, transport and link; ``*`` and ``?`` in patterns are wildcards.

    A combination belongs to the set if it matches a pattern of each given key.
    """

    scenario: Patterns = Field((), description="Labels of scenarios; all by default.")
    transport: Patterns = Field((), description="Labels of transports; all by default.")
    link: Patterns = Field((), description="Names of link conditions; all by default.")

    @model_validator(mode="after")
    def _says_something(self) -> "CellsFile":
        if not (self.scenario or self.transport or self.link):
            raise ValueError("empty: one of 'scenario', 'transport' and 'link' is needed")
        return self

    def to_cells(self) -> Cells:
        """Return the set in the form that manifest.json has: `mplab.format.experiment.Cells`."""
        return Cells(self.scenario, self.transport, self.link)


class HooksFile(Hooks):
    """Commands that this host runs, without a shell, around the run and its cells."""

    model_config = ConfigDict(extra="forbid")


class IntervalFile(FileModel):
    """Stop rule: the run ends when the 95 % confidence intervals of a metric are narrow enough for every transport."""

    metric: str = Field(min_length=1, description="Name of the metric.")
    within: Annotated[Percent, Field(gt=0)] = Field(
        description="Maximum half-width of an interval, relative to a median: for a difference that of the reference."
    )
    of: Literal["differences", "medians"] = Field(
        "differences",
        description="Intervals to check. differences: of each transport from the best single path, and between "
        "multipath transports, paired by block; medians: of each transport.",
    )
    after: int = Field(
        6, ge=3, le=1000, description="Minimum number of blocks; below 6, the signed ranks have no interval."
    )
    scenarios: tuple[str, ...] = Field(
        (), description="Labels of the scenarios that the rule is about; all by default."
    )
    links: tuple[str, ...] = Field((), description="Link conditions that the rule is about; all by default.")


class StopFile(FileModel):
    """Conditions that end a run before its plan is done."""

    failures: int | None = Field(None, ge=1, description="Number of consecutive cells that are not ok.")
    interval: IntervalFile | None = Field(None, description="Intervals that are narrow enough.")


def interval_rule(file: IntervalFile | None, document: Document) -> IntervalRule | None:
    """Return the stop rule ``stop: interval`` of an experiment file, with its file and line for messages.

    None: the file has no such rule.
    """
    if file is None:
        return None
    location = document.place(("stop", "interval"))
    return IntervalRule(file.metric, file.within, file.of, file.after, file.scenarios, file.links, location)


FORMAT = 1
MAX_CELLS = 100_000


_USE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {
                "type": ["object", "null"],
                "properties": {"label": {"type": "string", "pattern": "^[a-z0-9-]{1,40}$"}},
            },
        },
    ]
}

Use = Annotated[Any, WithJsonSchema(_USE_SCHEMA)]
LinkUse = Annotated[str | InlineLinkFile, SkipValidation]


class ToleranceFile(FileModel):
    """Maximum difference of a path's probed RTT and rate from the requested ones."""

    rtt: Annotated[Percent, Field(gt=0, description="Of the round-trip time.")] = 10.0
    rate: Annotated[Percent, Field(gt=0, description="Of both rates.")] = 10.0


class SmallestEffectFile(FileModel):
    """Smallest difference between two transports that matters: the larger of both values counts."""

    relative: Annotated[Percent, Field(description="Relative to the median of the reference.")] = 2.0
    time: Annotated[DurationS, Field(le=60, description="Of metrics that are times, at most 60 s.")] = 0.005


class ExperimentFile(FileModel):
    """An experiment: every scenario with every transport on every link condition."""

    model_config = ConfigDict(title="mplab experiment")

    mplab: Annotated[int, format_number("mplab", FORMAT), WithJsonSchema({"const": FORMAT})] = Field(
        description="Format of this file."
    )
    name: Name = Field(description="Part of the run directory's name: 1 to 40 of a-z, 0-9 and '-'.")
    title: str = Field("", description="Heading of the report; default: the name.")
    extends: str | None = Field(
        None, min_length=1, description="An experiment file, relative to this one, whose keys are inherited."
    )
    vars: dict[VariableName, Any] = Field(
        {}, description="Variables, for ${name} in values; --set NAME=VALUE replaces a value. Null: --set must give it."
    )
    seed: int = Field(
        1, ge=0, le=2**32 - 1, description="Seed of the order of the cells and of all random numbers in them."
    )
    repetitions: int = Field(1, ge=1, le=1000, description="Number of repetitions of every combination.")
    lab: str = Field(
        VIRTUAL_NAME,
        min_length=1,
        description=f"Lab of the run: '{VIRTUAL_NAME}', or the path of a lab file, relative to this file; --lab "
        "overrides it.",
    )
    transports: tuple[Use, ...] = Field(min_length=1, description="Names, or {name: {options, label}}.")
    links: tuple[LinkUse, ...] = Field(min_length=1, description="Names of link conditions, or conditions.")
    queues: Queues = Field(
        (),
        description="Queue lengths, like 150 kB or 50 packets: every link is used once with each of them, in all "
        "directions. '-q50' or '-q150kb' is added to its name. By default, links keep their own queues.",
    )
    scenarios: tuple[Use, ...] = Field(min_length=1, description="Names, or {name: {parameters, label}}.")
    tolerance: ToleranceFile = Field(
        ToleranceFile(),
        description="Maximum difference between probed and requested link, more than 0 %; beyond it, a cell is "
        "invalid.",
    )
    congestion_control: CongestionControl = Field(
        "cubic", description="Congestion control of agent and proxy; also of the origin, if the host permits it."
    )
    receive_buffer: ReceiveBuffer | None = Field(
        None,
        description="Maximum receive buffer of the phone's TCP sockets, 4 kB to 64 MB (tcp_rmem); default: the phone's "
        "own. The window that the phone announces is about half of it.",
    )
    capture: Capture = Field(
        "headers",
        description="Part of each packet that captures keep. 'payload' also keeps the TLS keys of the browser: "
        "everyone with the run can then decrypt its captures.",
    )
    retries: int = Field(
        1,
        ge=0,
        le=5,
        description="Number of further attempts at a cell that is not ok; attempts in which a program of the lab "
        "ended do not count.",
    )
    cell_timeout: DurationS | None = Field(
        None,
        description="Longest time for one attempt at a cell; default: that of the slowest scenario, at least 120 s.",
    )
    rest: Annotated[DurationS, Field(le=120)] = Field(
        0.0,
        description="Pause before each attempt at a cell, at most 120 s, so that radios and hosts become idle. It is "
        "part of the cell's hash, but does not count for cell_timeout.",
    )
    include: tuple[CellsFile, ...] = Field((), description="The combinations that are run; all by default.")
    exclude: tuple[CellsFile, ...] = Field((), description="Of these, the combinations that are not run.")
    grouped_by: tuple[Factor, ...] = Field(
        (),
        description="Factors that are kept together within a block, the first one changes least often; the others "
        "stay shuffled.",
    )
    max: Annotated[DurationS, Field(gt=0)] | None = Field(
        None, description="Maximum duration of the run: a block that would end later is not started."
    )
    until: TimeOfDay | None = Field(None, description="Latest end of the run, as a time of day of this host's clock.")
    stop: StopFile = Field(StopFile.model_validate({}), description="Rules that end the run before its plan is done.")
    hooks: HooksFile = Field(
        HooksFile.model_validate({}), description="Commands that this host runs around the run and its cells."
    )
    notes: str = Field("", description="For the report.")
    tags: tuple[Name, ...] = Field((), description="Search words for the run.")
    claims: tuple[ClaimFile, ...] = Field(
        (), description="Claims of a paper, which the report compares with the measured values."
    )
    smallest_effect: SmallestEffectFile = Field(
        SmallestEffectFile.model_validate({}),
        description="Differences between transports below it do not matter: the report calls such transports "
        "equivalent, if a test shows it.",
    )
    budgets: BudgetsByMetric = Field(
        {}, description="Limits of metrics: one or several for each metric. A broken one ends the run with exit code 4."
    )


@dataclass(frozen=True)
class ScenarioUse:
    """One use of a scenario in an experiment, with its parameters."""

    label: str
    name: str
    parameters: BaseModel
    """Instance of the scenario's ``parameters`` model."""
    time_limit_s: float
    estimate_s: float
    files: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    """Files of this checkout that the scenario depends on: path → content."""

    def record(self) -> ScenarioRecord:
        """Return the scenario as in manifest.json: quantities as text with units."""
        return ScenarioRecord(self.label, self.name, self.parameters.model_dump(mode="json"))


@dataclass(frozen=True)
class TransportUse:
    """One use of a transport in an experiment, with its options and its style in figures."""

    label: str
    name: str
    options: BaseModel | None
    """Instance of the transport's options model; None: the transport has no options."""
    colour: str
    marker: str
    title: str
    files: Mapping[str, bytes] = field(default_factory=dict, hash=False)
    """Files that the transport reads: path in a run's folder ``experiment`` → content."""
    paths: tuple[str, ...] = ()
    """Interfaces that one connection uses while no path fails, starting with the interface that opens it."""
    sessions: bool = False
    """True if application connections share long-lived connections to the proxy, one per interface."""
    sockets: SocketsFile = field(default_factory=lambda: SocketsFile.model_validate({}))
    """Options that every transport has; missing ones are those of the experiment."""

    @property
    def direct(self) -> bool:
        """Return whether the applications' sockets use the transport to the origin, without agent and proxy."""
        return isinstance(self.options, ViaOptions) and self.options.via == "direct"

    def record(self) -> TransportRecord:
        """Return the transport as in manifest.json. The default route is left out, as in records of older versions."""
        options = self.options.model_dump(mode="json") if self.options is not None else {}
        if not self.direct:
            options.pop("via", None)
        options |= self.sockets.model_dump(mode="json", exclude_unset=True)
        return TransportRecord(
            self.label, self.name, options, self.colour, self.marker, self.title, self.paths, self.sessions,
            ROUTES["direct" if self.direct else "proxy"],
        )  # fmt: skip


@dataclass(frozen=True)
class ParentFile:
    """File that an experiment file extends, directly or indirectly: its name without folder, and its content."""

    name: str
    source: bytes


@dataclass(frozen=True, kw_only=True)
class Experiment(ExperimentBase):
    """The experiment that a file describes: all names are resolved, all defaults are filled in.

    It also has the objects that this process needs to run the experiment.
    """

    path: Path
    source: bytes
    """Content of the file."""
    lab: LabUse
    transports: tuple[TransportUse, ...]
    scenarios: tuple[ScenarioUse, ...]
    parents: tuple[ParentFile, ...] = ()
    """Extended files, the nearest one first."""
    variables: Mapping[str, Any] = field(default_factory=dict)
    """Variables with their values in force."""
    given: Mapping[str, Any] = field(default_factory=dict)
    """Variables that were set outside the file, with their values."""

    @property
    def direct_multipath(self) -> bool:
        """Return whether applications and origin need Multipath TCP sockets: a direct transport over several paths."""
        return any(use.direct and len(use.paths) > 1 for use in self.transports)

    def scenario(self, label: str) -> ScenarioUse:
        """Return the scenario with this label. Raises KeyError."""
        return {use.label: use for use in self.scenarios}[label]

    def transport(self, label: str) -> TransportUse:
        """Return the transport with this label. Raises KeyError."""
        return {use.label: use for use in self.transports}[label]

    def sockets(self, label: str) -> SocketSettings:
        """Return the settings of the sockets in cells of the transport with this label. Raises KeyError."""
        chosen = self.transport(label).sockets
        buffer_bytes = chosen.receive_buffer if chosen.receive_buffer is not None else self.receive_buffer_bytes
        return SocketSettings(chosen.congestion_control or self.congestion_control, buffer_bytes)

    def link(self, name: str) -> LinkCondition:
        """Return the link condition with this name. Raises KeyError."""
        return {link.name: link for link in self.links}[name]

    @property
    def files(self) -> dict[str, bytes]:
        """Files on which the results of cells depend, in addition to the values of `record`: path → content."""
        uses: tuple[ScenarioUse | TransportUse, ...] = (*self.scenarios, *self.transports)
        return {path: content for use in uses for path, content in use.files.items()}

    @property
    def kept(self) -> dict[str, bytes]:
        """Files that the transports read: path in a run's folder ``experiment`` → content.

        A run copies them into that folder; a resumed run reads the copies.
        """
        return {path: content for use in self.transports for path, content in use.files.items()}

    def without_files(self) -> Self:
        """Return the experiment without `files`. The hashes of its cells are then those of old versions of mplab."""
        scenarios = tuple(replace(use, files={}) for use in self.scenarios)
        return replace(self, scenarios=scenarios, transports=tuple(replace(use, files={}) for use in self.transports))

    def record(self) -> Record:
        """Return the value of ``experiment`` in manifest.json."""
        return Record(
            **{entry.name: getattr(self, entry.name) for entry in fields(ExperimentBase)},
            scenarios=tuple(use.record() for use in self.scenarios),
            transports=tuple(use.record() for use in self.transports),
            extends=tuple(parent.name for parent in self.parents),
            variables=dict(self.variables),
            given=tuple(sorted(self.given)),
            files={path: hashlib.sha256(content).hexdigest() for path, content in sorted(self.files.items())},
        )
