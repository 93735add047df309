"""A path as written in a link file: keys of the path, keys of one direction, and the values that they set."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    PlainSerializer,
    Tag,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from mplab.base.suggest import show
from mplab.format.direction import (
    CONTROLLED,
    UNLIMITED,
    WAYS,
    Direction,
    Discipline,
    Distribution,
    GilbertElliott,
    Middlebox,
    Queue,
    Way,
)
from mplab.format.names import MAPPING, TEXT, FileModel
from mplab.format.path import PathCondition
from mplab.format.trace import Trace, parse_trace_name
from mplab.format.units import DurationMs, Percent, format_duration_ms, format_rate, parse_rate_kbps, parse_size_bytes

SMALLEST_QUEUE_BYTES = 1514
"""Size of a full Ethernet frame: no full packet fits into a smaller queue."""

_RATE_PATTERN = r"^\s*(unlimited|\+?[0-9]+(\.[0-9]+)?\s*[kMG]bit\/s)\s*$"
_QUEUE_PATTERN = r"^\s*\+?[0-9]+(\.[0-9]+)?\s*(packets?|B|kB|MB|GB|KiB|MiB|GiB)\s*$"


QUEUE_SCHEMA = {"type": "string", "pattern": _QUEUE_PATTERN, "examples": ["150 kB", "100 packets"]}
"""JSON Schema of the length of a queue."""


def _kind(value: object) -> str:
    """Return the tag of the form in which a value was written: `TEXT` or `MAPPING`."""
    return MAPPING if isinstance(value, dict | BaseModel) else TEXT


def _parse_rate(value: object) -> float | None:
    if value == UNLIMITED:
        return None
    try:
        return parse_rate_kbps(value)
    except ValueError as error:
        raise ValueError(f"{error}; or {UNLIMITED!r}") from None


def parse_queue(value: object) -> Queue:
    """Parse the length of a queue: ``"150 kB"``, ``"100 packets"``. Raises ValueError."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([0-9]{1,9})\s*packets?\s*", value, re.ASCII)):
        packets = int(match[1])
        if packets == 0:
            raise ValueError(f"queue {show(value)}: must hold at least 1 packet")
        return Queue("packets", packets)
    try:
        size = parse_size_bytes(value)
    except ValueError as error:
        raise ValueError(f"queue: {error}; or packets, like '100 packets'") from None
    if size < SMALLEST_QUEUE_BYTES:
        raise ValueError(f"queue {show(value)}: no full packet fits: at least {SMALLEST_QUEUE_BYTES} B")
    return Queue("bytes", size)


LinkRate = Annotated[
    float | None,
    BeforeValidator(_parse_rate),
    PlainSerializer(lambda kbps: UNLIMITED if kbps is None else format_rate(kbps), return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _RATE_PATTERN, "examples": ["7040 kbit/s", UNLIMITED]}),
]
QueueLength = Annotated[
    Queue,
    BeforeValidator(parse_queue),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema(QUEUE_SCHEMA),
]
TraceName = Annotated[
    str,
    BeforeValidator(parse_trace_name),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$"}),
]


class BurstLossFile(FileModel):
    """Burst losses (Gilbert-Elliott model)."""

    p: Annotated[Percent, Field(gt=0)] = Field(
        description="Probability of the transition from the good to the bad state after a packet; more than 0 %."
    )
    r: Annotated[Percent, Field(gt=0)] = Field(
        description="Probability of the transition from the bad to the good state; more than 0 %. Bursts have 1 / r "
        "packets on average."
    )
    good: Percent = Field(0.0, description="Loss rate in the good state.")
    bad: Percent = Field(100.0, description="Loss rate in the bad state.")

    def model(self) -> GilbertElliott:
        """Return the Gilbert-Elliott model with the probabilities and loss rates that the file gives, in percent."""
        return GilbertElliott(self.p, self.r, self.good, self.bad)


class QueueFile(FileModel):
    """A queue with its discipline."""

    length: QueueLength = Field(Queue(), description="Size, at least one full packet (1514 B), or 'N packets'.")
    discipline: Discipline = Field(
        "drop-tail", description="Queue discipline: RFC 8289 (codel), RFC 8290 (fq_codel). Not every shaper has each."
    )
    target: DurationMs = Field(5.0, description="Acceptable standing delay, for codel and fq_codel.")
    interval: DurationMs = Field(
        100.0, description="Time for which the delay may exceed the target, for codel and fq_codel."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        keys = [key for key in ("target", "interval") if key in self.model_fields_set]
        if keys and self.discipline not in CONTROLLED:
            raise ValueError(f"{self.discipline} has no '{keys[0]}': only {' and '.join(CONTROLLED)} have")
        if not 0 < self.target < self.interval:
            target, interval = format_duration_ms(self.target), format_duration_ms(self.interval)
            raise ValueError(f"target {target}, interval {interval}: the target must be more than 0 ms and the shorter")
        return self

    def queue(self) -> Queue:
        """Return the queue that the file describes: length, discipline, and the discipline's parameters."""
        return replace(self.length, discipline=self.discipline, target_ms=self.target, interval_ms=self.interval)


LossKey = Annotated[
    Annotated[Percent, Tag(TEXT)] | Annotated[BurstLossFile, Tag(MAPPING)],
    Discriminator(_kind),
]
QueueKey = Annotated[
    Annotated[QueueLength, Tag(TEXT)] | Annotated[QueueFile, Tag(MAPPING)],
    Discriminator(_kind),
]


class DirectionFile(FileModel):
    """One direction of a path. Missing keys have the values of the path."""

    rate: LinkRate = Field(default=None, description="Rate of IP bytes, or 'unlimited'.")
    delay: DurationMs = Field(default=0.0, description="One-way delay.")
    jitter: DurationMs = Field(default=0.0, description="Variation of the delay.")
    distribution: Distribution = Field(default="uniform", description="Of the jitter.")
    loss: LossKey = Field(default=0.0, description="Share of packets lost at random, or {p, r, good, bad}.")
    reorder: Percent = Field(default=0.0, description="Share of packets that skip the delay.")
    duplicate: Percent = Field(default=0.0, description="Share of packets that are duplicated.")
    queue: QueueKey = Field(default=Queue(), description="Bytes, 'N packets', or with a discipline.")
    trace: TraceName = Field(
        default="", description="File in router-configs/traces: a packet-delivery trace, instead of a rate."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"empty: one of {', '.join(type(self).model_fields)} is needed")
        if {"rate", "trace"} <= self.model_fields_set:
            raise ValueError("'rate' and 'trace': a trace replaces the rate. Give one of them")
        return self


DirectionKey = Annotated[
    Annotated[LinkRate, Tag(TEXT)] | Annotated[DirectionFile, Tag(MAPPING)],
    Discriminator(_kind),
]

ATTRIBUTES: Mapping[str, str] = {
    "rate": "rate_kbps",
    "delay": "delay_ms",
    "jitter": "jitter_ms",
    "distribution": "distribution",
    "loss": "loss",
    "reorder": "reorder_percent",
    "duplicate": "duplicate_percent",
    "queue": "queue",
    "trace": "trace",
    "middlebox": "middlebox",
}
"""Key of a direction in a file → attribute of `Direction`."""

PATH_KEYS = ("rtt", "loss", "jitter", "queue", "distribution", "reorder", "duplicate", "middlebox")
"""Keys of a path that apply to both directions."""


@dataclass(frozen=True)
class Setting:
    """One value that a file sets for one direction of a path.

    Attributes:
        way: the direction: ``down`` or ``up``.
        attribute: attribute of `Direction` that is set.
        value: value of the attribute, in its unit.
        key: key of the file that sets the value: ``loss`` (of the path), ``down``, ``down.loss``.
    """

    way: Way
    attribute: str
    value: Any
    key: str


def settings(file: BaseModel, traces: Path) -> list[Setting]:
    """Return the values that the keys of a path set in its directions, in the order in which they must be set.

    Keys of a direction come last, so that they override those of the path.

    Args:
        file: a `PathFile`, or another model with the same keys; keys that are not given set nothing.
        traces: folder of the traces.
    """
    values = []
    for key in PATH_KEYS:
        if key not in file.model_fields_set:
            continue
        value = _value(key, getattr(file, key), traces)
        if key == "rtt":
            value /= 2
        attribute = "delay_ms" if key == "rtt" else ATTRIBUTES[key]
        values += [Setting("down", attribute, value, key), Setting("up", attribute, value, key)]
    for direction in ("down", "up"):
        if direction in file.model_fields_set:
            values += _of_direction("down" if direction == "down" else "up", getattr(file, direction), traces)
    return values


def _of_direction(way: Way, direction: float | DirectionFile | None, traces: Path) -> Iterator[Setting]:
    if not isinstance(direction, DirectionFile):
        yield Setting(way, "rate_kbps", direction, way)
        yield Setting(way, "trace", None, way)
        return
    for key in type(direction).model_fields:
        if key in direction.model_fields_set:
            yield Setting(way, ATTRIBUTES[key], _value(key, getattr(direction, key), traces), f"{way}.{key}")
    for present, other in (("rate", "trace"), ("trace", "rate_kbps")):
        if present in direction.model_fields_set:
            yield Setting(way, other, None, f"{way}.{present}")


def _value(key: str, value: Any, traces: Path) -> Any:  # noqa: ANN401 - as the key has it
    if isinstance(value, BurstLossFile):
        return value.model()
    if isinstance(value, QueueFile):
        return value.queue()
    return Trace(traces / value) if key == "trace" else value


_NO_RTT = -1.0
"""Default of the key ``rtt``, which no file can contain: the key is missing."""


class PathFile(FileModel):
    """One path as written in a file."""

    down: DirectionKey = Field(description="Towards the phone: the rate (IP bytes), 'unlimited', or a direction.")
    up: DirectionKey = Field(description="From the phone, likewise.")
    rtt: DurationMs = Field(
        default=_NO_RTT,
        validate_default=True,
        description="Round-trip time of the idle path, half of it in each direction. Omit it where both directions "
        "have a delay; where one has, the other gets the rest.",
    )
    loss: LossKey = Field(0.0, description="Share of packets lost at random, or {p, r, good, bad}; each direction.")
    jitter: DurationMs = Field(
        0.0, description="Variation of the one-way delay, in each direction; at most the delay. It does not reorder."
    )
    distribution: Distribution = Field(
        "uniform",
        description="Distribution of the jitter: even in ± jitter, or netem's tables with jitter as standard "
        "deviation.",
    )
    reorder: Percent = Field(
        0.0, description="Share of packets that skip the delay and so overtake others, in each direction."
    )
    duplicate: Percent = Field(0.0, description="Share of packets that are duplicated, in each direction.")
    queue: QueueKey = Field(
        Queue(),
        description="Queue before the link, in each direction: size, 'N packets', or with a discipline. Without a "
        "rate no packet queues.",
    )

    middlebox: Middlebox = Field(
        "none",
        description="Device on the path, for both directions. strip-mptcp: overwrites the options of Multipath TCP in "
        "handshakes, so that its connections fall back to plain TCP. Only the virtual lab has it.",
    )

    @field_validator("rtt", mode="wrap")
    @classmethod
    def _needed(cls, value: object, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> object:
        """Check that the file gives an RTT, or a delay in both directions; otherwise raise ValueError.

        A direction that could not be parsed counts as one with a delay.
        """
        if value != _NO_RTT:
            return read(value)
        directions = [info.data[direction] for direction in WAYS if direction in info.data]
        if any(
            not isinstance(direction, DirectionFile) or "delay" not in direction.model_fields_set
            for direction in directions
        ):
            raise ValueError("key 'rtt' is missing")
        return 0.0

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterator[str]:
        for name, direction_file in (("down", self.down), ("up", self.up)):
            if isinstance(direction_file, DirectionFile) and not direction_file.model_fields_set & {"rate", "trace"}:
                yield f"{name}: key 'rate' is missing (or 'trace')"
        delays = self._delays()
        if "rtt" in self.model_fields_set and sum(delays.values()) > self.rtt:
            yield f"the delay of {' and '.join(delays)} is more than the rtt {format_duration_ms(self.rtt)}"
        elif "rtt" in self.model_fields_set and len(delays) == 2 and sum(delays.values()) != self.rtt:
            total = format_duration_ms(sum(delays.values()))
            yield f"both delays together are {total}, the rtt is {format_duration_ms(self.rtt)}: leave 'rtt' out"
        condition = self.condition(Path())
        for direction in dict.fromkeys((condition.down, condition.up)):
            if direction.distribution != "uniform" and not direction.jitter_ms:
                yield f"distribution {direction.distribution} of no jitter: give 'jitter', too"
        yield from condition.problems()

    def _delays(self) -> dict[str, float]:
        """Return direction → value of its key ``delay``, ms; directions without this key are left out."""
        directions = (("down", self.down), ("up", self.up))
        return {
            name: direction.delay
            for name, direction in directions
            if isinstance(direction, DirectionFile) and "delay" in direction.model_fields_set
        }

    def condition(self, traces: Path) -> PathCondition:
        """Return the path condition that the file describes; `traces` is the folder of the trace files.

        If only one direction has a ``delay``, the other direction gets the rest of the RTT.
        """
        values: dict[Way, dict[str, Any]] = {"down": {}, "up": {}}
        for setting in settings(self, traces):
            values[setting.way][setting.attribute] = setting.value
        delays = self._delays()
        if len(delays) == 1:
            values["up" if "down" in delays else "down"]["delay_ms"] = max(self.rtt - sum(delays.values()), 0.0)
        return PathCondition(down=Direction(**values["down"]), up=Direction(**values["up"]))
