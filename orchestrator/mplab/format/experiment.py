"""The experiment: what is to be run, every name resolved and every default filled in.

An experiment file says it in other words (`mplab.userfiles.experiment`); manifest.json holds it as it is here.
"""

import dataclasses
import re
import shlex
from collections.abc import Sequence
from datetime import datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Annotated, Literal, TypeAlias

from pydantic import (
    BeforeValidator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    field_serializer,
    model_serializer,
    model_validator,
)
from pydantic.dataclasses import dataclass

from mplab.base.suggest import show
from mplab.format.link import LinkCondition
from mplab.format.palette import MARKERS_OF_FIGURES, PALETTE
from mplab.format.record import CONFIG, LENIENT, RecordName, Settings, Whole, json_of, without_empty
from mplab.format.units import format_duration_s, parse_duration_s
from mplab.format.upgrades import upgrade_transport

LEAST_DEFAULT_TIMEOUT_S = 120.0
"""The default of ``cell_timeout``, unless a scenario may take longer."""
CELL_OVERHEAD_S = 3.0
"""Usual time of a cell around its scenario: shape, probe, start and verify the transport, captures, undo."""

CongestionControl = Literal["cubic", "reno", "bbr"]
Capture = Literal["headers", "payload", "off"]
Statistic = Literal["median", "mean", "p75", "p90", "p95", "worst"]
Factor = Literal["scenario", "transport", "link"]
FACTORS: tuple[Factor, ...] = ("scenario", "transport", "link")
HOOK_NAMES = ("before_run", "after_run", "before_cell", "after_cell")
Argv: TypeAlias = tuple[str, ...]

_DAY = timedelta(days=1)
_NOT_RECORDED = Field(exclude=True)


@dataclass(frozen=True, config=CONFIG)
class Tolerance:
    """How far a probed link may be from the requested one, percent of the requested value."""

    rtt_percent: float = 10.0
    rate_percent: float = 10.0


@dataclass(frozen=True, config=CONFIG)
class Scenario:
    """One scenario of the experiment: `name` is the plug-in, `label` the name of this use of it."""

    label: RecordName
    name: RecordName
    parameters: Settings = dataclasses.field(default_factory=dict)
    """Quantities are text with units."""


@dataclass(frozen=True, config=CONFIG)
class Transport:
    """One transport of the experiment, with its fixed look in every figure."""

    label: RecordName
    name: RecordName
    options: Settings = dataclasses.field(default_factory=dict)
    colour: str = ""
    marker: str = ""
    title: str = ""
    paths: tuple[str, ...] = ()
    """Interfaces that one connection uses while no path fails; the first one begins it."""
    sessions: bool = False
    """Application connections share lasting connections to the proxy, one per interface."""

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, given: object) -> object:
        """Take what older versions wrote, too."""
        return upgrade_transport(given)

    @property
    def single_path(self) -> bool:
        """Whether it uses one path only."""
        return len(self.paths) == 1

    def dressed(self, position: int) -> "Transport":
        """Return it with a title, a colour and a marker, which an old or foreign record may lack.

        Args:
            position: among the transports, from 0.
        """
        colour = self.colour if re.fullmatch(r"#[0-9A-Fa-f]{6}", self.colour) else PALETTE[position % len(PALETTE)]
        fallback = MARKERS_OF_FIGURES[position % len(MARKERS_OF_FIGURES)]
        marker = self.marker if self.marker in MARKERS_OF_FIGURES else fallback
        return dataclasses.replace(self, title=self.title or self.label, colour=colour, marker=marker)


@dataclass(frozen=True, config=CONFIG, kw_only=True)
class Claim:
    """What a paper says that a transport gains over the best of some others: a range, percent."""

    text: str
    source: str = ""
    metric: str
    transport: str
    """Label."""
    against: tuple[str, ...]
    """Labels."""
    gain_percent: tuple[float, float]
    scenarios: tuple[str, ...] = ()
    """Labels; empty: all."""
    links: tuple[str, ...] = ()
    """Empty: all."""
    against_link: str = ""
    """Under which link condition the others are meant; "": under the same."""

    def is_about(self, scenario: str, link: str) -> bool:
        """Whether it says something of a scenario (by its label) under a link condition."""
        return (not self.scenarios or scenario in self.scenarios) and (not self.links or link in self.links)


@dataclass(frozen=True, config=CONFIG)
class Limit:
    """A number in the unit that the file has; "" for a number alone."""

    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        """As a file would say it."""
        return f"{self.value:g} {self.unit}".rstrip()


@dataclass(frozen=True, config=CONFIG)
class Budget:
    """What a metric must keep to; what is empty does not narrow it."""

    metric: str
    transport: str = ""
    """Label."""
    scenarios: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    labels: Annotated[dict[str, str], LENIENT] = dataclasses.field(default_factory=dict)
    statistic: Statistic = "median"
    at_most: Limit | None = None
    at_least: Limit | None = None
    no_worse_than_percent: float | None = None
    place: Annotated[str, _NOT_RECORDED] = ""
    """File and line."""


@dataclass(frozen=True, config=CONFIG)
class IntervalRule:
    """When a run has measured enough: the 95 % intervals of a metric are narrow for every transport."""

    metric: str
    within_percent: float
    """Half of an interval's width at most, of a median."""
    of: Literal["differences", "medians"] = "differences"
    """Of a transport against the best single path, by block; or of each by itself."""
    after: Whole = 6
    """Blocks that are run in any case."""
    scenarios: tuple[str, ...] = ()
    """Labels; empty: all."""
    links: tuple[str, ...] = ()
    """Empty: all."""
    place: Annotated[str, _NOT_RECORDED] = ""
    """File and line."""

    def is_about(self, scenario: str, link: str) -> bool:
        """Whether it looks at a scenario (by its label) under a link condition."""
        return (not self.scenarios or scenario in self.scenarios) and (not self.links or link in self.links)


def parse_time_of_day(found: object) -> time:
    """``"06:00"``. Raises ValueError."""
    if isinstance(found, time):
        return found
    try:
        return datetime.strptime(str(found), "%H:%M").time()  # noqa: DTZ007 - of any day, this host's
    except ValueError:
        raise ValueError(f'{show(found)}: a time of day is needed, like "06:00"') from None


@dataclass(frozen=True, config=CONFIG)
class Ending:
    """What ends a run before its plan is done.

    Attributes:
        max_s: duration of the run at most, from each start on, seconds.
        until: time of day by this host's clock at which it must have ended.
        failures: number of cells in a row that are not ok.
        interval: when it has measured enough.
    """

    max_s: float | None = None
    until: Annotated[time, BeforeValidator(parse_time_of_day)] | None = None
    failures: int | None = None
    interval: IntervalRule | None = None

    def deadline(self, begun: datetime) -> datetime | None:
        """When a run that has `begun` is to have ended, or None."""
        found = [begun + timedelta(seconds=self.max_s)] if self.max_s is not None else []
        if self.until is not None:
            at = begun.replace(hour=self.until.hour, minute=self.until.minute, second=0, microsecond=0)
            found.append(at if at > begun else at + _DAY)
        return min(found, default=None)

    @field_serializer("until")
    def _until(self, until: time | None) -> str | None:
        return until.strftime("%H:%M") if until is not None else None

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Without what does not end it."""
        return without_empty(handler(self))


AT_THE_END = Ending()
"""Nothing ends it before."""


@dataclass(frozen=True, config=CONFIG)
class Hooks:
    """Commands of the host, by when they are run; each is ended after `timeout_s` seconds. No shell reads them."""

    before_run: tuple[Argv, ...] = ()
    after_run: tuple[Argv, ...] = ()
    before_cell: tuple[Argv, ...] = ()
    after_cell: tuple[Argv, ...] = ()
    timeout_s: float = 60.0

    def commands(self, name: str) -> tuple[Argv, ...]:
        """Return those of one of `HOOK_NAMES`. Raises KeyError."""
        by_name = {
            "before_run": self.before_run,
            "after_run": self.after_run,
            "before_cell": self.before_cell,
            "after_cell": self.after_cell,
        }
        return by_name[name]

    def __bool__(self) -> bool:
        """Whether there are any."""
        return any(self.commands(name) for name in HOOK_NAMES)

    @property
    def of_cells(self) -> bool:
        """Whether there are any around cells."""
        return bool(self.before_cell or self.after_cell)

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, given: object) -> object:
        """Take what `to_json` gave, too."""
        if isinstance(given, dict) and "timeout" in given:
            return {**given, "timeout_s": parse_duration_s(given["timeout"])}
        return given

    @model_serializer
    def to_json(self) -> dict[str, JsonValue]:
        """As in manifest.json; empty when there are none."""
        commands: dict[str, JsonValue] = {
            name: [list(one) for one in self.commands(name)] for name in HOOK_NAMES if self.commands(name)
        }
        return {**commands, "timeout": format_duration_s(self.timeout_s)} if commands else {}

    def text(self) -> str:
        """All of them in words: ``before_run: 'logger begins'; after_cell: 'sync'``."""
        listed = {name: ", ".join(f"'{shlex.join(one)}'" for one in self.commands(name)) for name in HOOK_NAMES}
        return "; ".join(f"{name}: {said}" for name, said in listed.items() if said)


NO_HOOKS = Hooks()


@dataclass(frozen=True, config=CONFIG)
class Cells:
    """Some combinations, by patterns of labels; no pattern of a factor: all of it."""

    scenario: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    link: tuple[str, ...] = ()

    def have(self, combination: Sequence[str]) -> bool:
        """Whether (scenario, transport, link) is one of them."""
        factors = zip((self.scenario, self.transport, self.link), combination, strict=True)
        return all(
            not patterns or any(fnmatchcase(label, pattern) for pattern in patterns) for patterns, label in factors
        )

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Factor → patterns, of those that are given."""
        return without_empty(handler(self))


@dataclass(frozen=True, config=CONFIG)
class Matrix:
    """The combinations of an experiment: what `include` has, all when it has nothing, without what `exclude` has."""

    include: tuple[Cells, ...] = ()
    exclude: tuple[Cells, ...] = ()

    def has(self, combination: Sequence[str]) -> bool:
        """Whether (scenario, transport, link) is run."""
        wanted = not self.include or any(cells.have(combination) for cells in self.include)
        return wanted and not any(cells.have(combination) for cells in self.exclude)

    @model_serializer(mode="wrap")
    def _given(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Empty when everything is run."""
        return without_empty(handler(self))


EVERYTHING = Matrix()


_DEFAULT_TOLERANCE = Tolerance()
_HASHED = {"hashed": "always"}
"""Of a field that the results of cells depend on: it is part of their hashes."""
_HASHED_IF_GIVEN = {"hashed": "if given"}
"""The same, of a later field: its default is left out, so that the hashes of earlier runs stay."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentBase:
    """What the experiment of this process and its record share.

    A key of an experiment file that needs no resolution gets its value by its name; a duration ends in ``_s`` here.
    """

    name: RecordName
    title: str = ""
    seed: Whole = 0
    repetitions: Whole = 0
    links: tuple[LinkCondition, ...] = ()
    tolerance: Tolerance = dataclasses.field(default=_DEFAULT_TOLERANCE, metadata=_HASHED)
    capture: Capture = dataclasses.field(default="headers", metadata=_HASHED)
    congestion_control: CongestionControl = dataclasses.field(default="cubic", metadata=_HASHED)
    retries: Whole = 1
    cell_timeout_s: float = LEAST_DEFAULT_TIMEOUT_S
    rest_s: float = dataclasses.field(default=0.0, metadata=_HASHED_IF_GIVEN)
    """Pause before each attempt at a cell, not part of `cell_timeout_s`."""
    matrix: Matrix = EVERYTHING
    grouped_by: tuple[Factor, ...] = ()
    ending: Ending = AT_THE_END
    hooks: Hooks = NO_HOOKS
    notes: str = ""
    tags: tuple[str, ...] = ()
    claims: tuple[Claim, ...] = ()
    budgets: tuple[Budget, ...] = ()

    @property
    def overhead_s(self) -> float:
        """Usual time of a cell around its scenario, seconds."""
        return CELL_OVERHEAD_S + self.rest_s

    def determinants(self) -> dict[str, JsonValue]:
        """Return what the results of every cell depend on, for the hashes of the cells."""
        found = {}
        for one in dataclasses.fields(ExperimentBase):
            rule, value = one.metadata.get("hashed"), getattr(self, one.name)
            if rule == "always" or (rule == "if given" and value != one.default):
                found[one.name] = json_of(value) if dataclasses.is_dataclass(value) else value
        return found


@dataclass(frozen=True, kw_only=True, config=CONFIG)
class Experiment(ExperimentBase):
    """``experiment`` in manifest.json."""

    scenarios: tuple[Scenario, ...] = ()
    transports: tuple[Transport, ...] = ()
    extends: tuple[str, ...] = ()
    """Names of the files that were extended, the nearest one first."""
    variables: Settings = dataclasses.field(default_factory=dict)
    """With their values in force."""
    given: tuple[str, ...] = ()
    """Those of them that were set from outside of the file."""
    files: dict[str, str] | None = None
    """Files that cells depend on: path → SHA-256, hex. None: of an mplab that did not hash them."""
