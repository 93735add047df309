"""Models of an experiment in manifest.json, with all names resolved and all defaults filled in.

`mplab.userfiles.experiments.experiment` has the models of an experiment file.
"""

import dataclasses
import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    WithJsonSchema,
    field_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass

from mplab.base.suggest import show
from mplab.format.claim import Claim
from mplab.format.hooks import NO_HOOKS, Hooks
from mplab.format.link import LinkCondition
from mplab.format.palette import MARKERS_OF_FIGURES, PALETTE
from mplab.format.record import CONFIG, LENIENT, OMIT_EMPTY, RecordName, Settings, Whole, json_of, upgrade_transport
from mplab.format.units import LabelText

LEAST_DEFAULT_TIMEOUT_S = 120.0
"""Minimum default of ``cell_timeout``; a scenario that may take longer has a larger one."""
CELL_OVERHEAD_S = 3.0
"""Usual time of a cell in addition to its scenario, seconds: shape, probe, start and test the transport, undo."""

CongestionControl = Literal["cubic", "reno", "bbr"]
Capture = Literal["headers", "payload", "off"]
Statistic = Literal["median", "mean", "p75", "p90", "p95", "worst"]
Factor = Literal["scenario", "transport", "link"]
FACTORS: tuple[Factor, ...] = ("scenario", "transport", "link")

_DAY = timedelta(days=1)
_NOT_RECORDED = Field(exclude=True)


@dataclass(frozen=True, config=CONFIG)
class Tolerance:
    """Maximum difference of a path's probed RTT and rate from the requested ones, percent of the requested value."""

    rtt_percent: float = 10.0
    rate_percent: float = 10.0


@dataclass(frozen=True, config=CONFIG)
class ScenarioRecord:
    """One use of a scenario in an experiment: `name` is that of the plug-in, `label` identifies this use."""

    label: RecordName
    name: RecordName
    parameters: Settings = dataclasses.field(default_factory=dict)
    """Parameters; quantities are text with units."""


@dataclass(frozen=True, config=CONFIG)
class TransportRecord:
    """One use of a transport in an experiment, with its options and its style in figures."""

    label: RecordName
    name: RecordName
    options: Settings = dataclasses.field(default_factory=dict)
    colour: str = ""
    marker: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    """Interfaces that one connection uses while no path fails, starting with the interface that opens it."""
    sessions: bool = False
    """True if application connections share long-lived connections to the proxy, one per interface."""
    route: str = ""
    """Route of the applications' connections, as text; "": the record is of a version that did not write it."""

    @property
    def direct(self) -> bool:
        """Return whether the applications' sockets use the transport to the origin, without agent and proxy."""
        return self.options.get("via") == "direct"

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert a record of an older version to the present form."""
        return upgrade_transport(data)

    @property
    def single_path(self) -> bool:
        """Return whether the transport uses only one path (interface)."""
        return len(self.paths) == 1

    def dressed(self, position: int) -> "TransportRecord":
        """Return the record with defaults for title, colour and marker where it has no valid ones, as in old records.

        Args:
            position: index of the transport in the experiment, from 0.
        """
        colour = self.colour if re.fullmatch(r"#[0-9A-Fa-f]{6}", self.colour) else PALETTE[position % len(PALETTE)]
        fallback = MARKERS_OF_FIGURES[position % len(MARKERS_OF_FIGURES)]
        marker = self.marker if self.marker in MARKERS_OF_FIGURES else fallback
        return dataclasses.replace(self, title=self.title or self.label, colour=colour, marker=marker)


@dataclass(frozen=True, config=CONFIG)
class Limit:
    """Limit in a budget: a number, and its unit as in the experiment file; unit "": the number has none."""

    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        """Number and unit as in an experiment file: ``2 s``."""
        return f"{self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True, config=CONFIG)
class Budget:
    """Limits of a metric, and the transport, scenarios, links and labels of the values to which the limits apply.

    The limits apply to every transport if `transport` is empty; likewise for scenarios, links and labels.
    """

    metric: str
    transport: str = ""
    """Label of the transport."""
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    labels: Annotated[dict[str, LabelText], LENIENT] = dataclasses.field(default_factory=dict)
    statistic: Statistic = "median"
    at_most: Limit | None = None
    at_least: Limit | None = None
    no_worse_than_percent: float | None = None
    place: Annotated[str, _NOT_RECORDED] = ""
    """File and line of the rule, for messages."""


@dataclass(frozen=True, config=CONFIG)
class SmallestEffect:
    """Smallest difference between two transports that matters: the larger of both values. 0: every difference matters.

    `time_s` applies only to metrics that are times.
    """

    relative_percent: float = 2.0
    """Percent of the reference's median."""
    time_s: float = 0.005


@dataclass(frozen=True, config=CONFIG)
class IntervalRule:
    """Stop rule: the run ends when the 95 % confidence intervals of a metric are narrow enough for every transport."""

    metric: str
    within_percent: float
    """Maximum half-width of an interval, percent of the median."""
    of: Literal["differences", "medians"] = "differences"
    """Differences of each transport from the best single path, by block; or the median of each transport."""
    after: Whole = 6
    """Minimum number of blocks."""
    scenarios: tuple[str, ...] = ()
    """Labels; empty: all."""
    links: tuple[str, ...] = ()
    """Names of link conditions; empty: all."""
    place: Annotated[str, _NOT_RECORDED] = ""
    """File and line of the rule, for messages."""

    def is_about(self, scenario: str, link: str) -> bool:
        """Return whether the rule covers a scenario (by its label) under a link condition."""
        return (not self.scenarios or scenario in self.scenarios) and (not self.links or link in self.links)


def parse_time_of_day(value: object) -> time:
    """Parse a time of day: ``"06:00"``. Raises ValueError."""
    if isinstance(value, time):
        return value
    try:
        return datetime.strptime(str(value), "%H:%M").time()  # noqa: DTZ007 - of any day, this host's
    except ValueError:
        raise ValueError(f'{show(value)}: a time of day is needed, like "06:00"') from None


TimeOfDay = Annotated[
    time,
    BeforeValidator(parse_time_of_day),
    WithJsonSchema({"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "examples": ["06:00"]}),
]


@dataclass(frozen=True, config=CONFIG)
class Ending:
    """Conditions that end a run before its plan is done.

    Attributes:
        max_s: maximum duration of the run, counted from each start or resume, seconds.
        until: time of day, in this host's time zone, by which the run must end.
        failures: number of consecutive cells that are not ok after which the run ends.
        interval: rule that ends the run when its confidence intervals are narrow enough.
    """

    max_s: Annotated[float | None, OMIT_EMPTY] = None
    until: Annotated[TimeOfDay | None, OMIT_EMPTY] = None
    failures: Annotated[int | None, OMIT_EMPTY] = None
    interval: Annotated[IntervalRule | None, OMIT_EMPTY] = None

    def deadline(self, begun: datetime) -> datetime | None:
        """Return the time by which a run that started at `begun` must end; None: there is no time limit."""
        deadlines = [begun + timedelta(seconds=self.max_s)] if self.max_s is not None else []
        if self.until is not None:
            at = begun.replace(hour=self.until.hour, minute=self.until.minute, second=0, microsecond=0)
            deadlines.append(at if at > begun else at + _DAY)
        return min(deadlines, default=None)

    @field_serializer("until")
    def _until(self, until: time | None) -> str | None:
        return until.strftime("%H:%M") if until is not None else None


AT_THE_END = Ending()
"""The run ends only when its plan is done."""


@dataclass(frozen=True, config=CONFIG)
class Cells:
    """A set of combinations of scenario, transport and link, selected by patterns of their labels.

    A field without patterns matches every label.
    """

    scenario: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    transport: Annotated[tuple[str, ...], OMIT_EMPTY] = ()
    link: Annotated[tuple[str, ...], OMIT_EMPTY] = ()

    def have(self, combination: Sequence[str]) -> bool:
        """Return whether the set contains the combination (scenario, transport, link)."""
        factors = zip((self.scenario, self.transport, self.link), combination, strict=True)
        return all(
            not patterns or any(fnmatchcase(label, pattern) for pattern in patterns) for patterns, label in factors
        )


@dataclass(frozen=True, config=CONFIG)
class Matrix:
    """Combinations of scenario, transport and link that are run: `include` (empty: all) without `exclude`."""

    include: Annotated[tuple[Cells, ...], OMIT_EMPTY] = ()
    exclude: Annotated[tuple[Cells, ...], OMIT_EMPTY] = ()

    def has(self, combination: Sequence[str]) -> bool:
        """Return whether the combination (scenario, transport, link) is run."""
        wanted = not self.include or any(cells.have(combination) for cells in self.include)
        return wanted and not any(cells.have(combination) for cells in self.exclude)


EVERYTHING = Matrix()


_DEFAULT_TOLERANCE = Tolerance()
_DEFAULT_SMALLEST_EFFECT = SmallestEffect()
_HASHED = {"hashed": "always"}
"""Metadata of a field on which the results of cells depend: its value is part of each cell's hash."""
_HASHED_IF_GIVEN = {"hashed": "if given"}
"""Like `_HASHED`, for fields added later: a default value is not hashed, so that hashes of earlier runs stay valid."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentBase:
    """Fields that `ExperimentRecord` in manifest.json and `mplab.userfiles.experiments.experiment.Experiment` share.

    A key of an experiment file that needs no resolution sets the field of the same name. A duration has ``_s`` at the
    end of its field's name.
    """

    name: RecordName
    title: str = ""
    seed: Whole = 0
    repetitions: Whole = 0
    links: tuple[LinkCondition, ...] = ()
    tolerance: Tolerance = dataclasses.field(default=_DEFAULT_TOLERANCE, metadata=_HASHED)
    capture: Capture = dataclasses.field(default="headers", metadata=_HASHED)
    congestion_control: CongestionControl = dataclasses.field(default="cubic", metadata=_HASHED)
    receive_buffer_bytes: Annotated[Whole | None, OMIT_EMPTY] = dataclasses.field(
        default=None, metadata=_HASHED_IF_GIVEN
    )
    """Maximum receive buffer of the phone's sockets; None: the phone's own."""
    retries: Whole = 1
    cell_timeout_s: float = LEAST_DEFAULT_TIMEOUT_S
    rest_s: float = dataclasses.field(default=0.0, metadata=_HASHED_IF_GIVEN)
    """Pause before each attempt at a cell, seconds; not part of `cell_timeout_s`."""
    matrix: Matrix = EVERYTHING
    grouped_by: tuple[Factor, ...] = ()
    ending: Ending = AT_THE_END
    hooks: Hooks = NO_HOOKS
    notes: str = ""
    tags: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    budgets: tuple[Budget, ...] = ()
    smallest_effect: SmallestEffect = _DEFAULT_SMALLEST_EFFECT

    @property
    def overhead_s(self) -> float:
        """Usual duration of a cell in addition to that of its scenario, seconds."""
        return CELL_OVERHEAD_S + self.rest_s

    def determinants(self) -> dict[str, JsonValue]:
        """Return field → value for the fields on which the results of every cell depend; part of each cell's hash."""
        values = {}
        for field in dataclasses.fields(ExperimentBase):
            rule, value = field.metadata.get("hashed"), getattr(self, field.name)
            if rule == "always" or (rule == "if given" and value != field.default):
                values[field.name] = json_of(value) if dataclasses.is_dataclass(value) else value
        return values


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class ExperimentRecord(ExperimentBase):
    """Value of ``experiment`` in manifest.json."""

    scenarios: tuple[ScenarioRecord, ...] = ()
    transports: tuple[TransportRecord, ...] = ()
    extends: tuple[str, ...] = ()
    """Names of the extended files, the nearest one first."""
    variables: Settings = dataclasses.field(default_factory=dict)
    """Variables with their values in force."""
    given: tuple[str, ...] = ()
    """Variables that were set outside the file."""
    files: dict[str, str] | None = None
    """Files that cells depend on: path → SHA-256, hex. None: written by a version that did not hash them."""

    def congestion_control_of(self, transport: str) -> str:
        """Return the congestion control requested for the cells of a transport, by its label."""
        chosen = next(
            (use.options.get("congestion_control") for use in self.transports if use.label == transport), None
        )
        return chosen if isinstance(chosen, str) else self.congestion_control
