"""Condition of one direction of a path: rate, delay, loss and queue of the packets that travel that way."""

from collections.abc import Callable, Mapping
from typing import Literal

from pydantic import model_serializer, model_validator
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from mplab.format.record import CONFIG
from mplab.format.trace import RecordedTrace, TraceJson
from mplab.format.units import format_duration_ms, format_percent, format_rate, format_size

DEFAULT_QUEUE_BYTES = 150_000
UNLIMITED = "unlimited"

Way = Literal["down", "up"]
"""Towards the phone, or from the phone."""
WAYS: tuple[Way, ...] = ("down", "up")

Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]
Discipline = Literal["drop-tail", "codel", "fq_codel", "cake"]

Middlebox = Literal["none", "strip-mptcp"]
"""Device on a path that changes packets. strip-mptcp: removes the options of Multipath TCP from handshakes."""

CONTROLLED: tuple[Discipline, ...] = ("codel", "fq_codel")
"""Disciplines with a target and an interval (RFC 8289, RFC 8290)."""


class QueueJson(TypedDict, total=False):
    """A queue as written in records: its length in ``bytes`` or in ``packets``."""

    bytes: int
    packets: int
    discipline: Discipline
    target_ms: float
    interval_ms: float


@dataclass(frozen=True, config=CONFIG)
class Queue:
    """Queue in front of a link: its length and its discipline.

    Attributes:
        target_ms: acceptable standing queue delay (RFC 8289 §4.2); only for `CONTROLLED` disciplines.
        interval_ms: time for which the delay may exceed the target (RFC 8289 §4.3); only for `CONTROLLED` disciplines.
    """

    unit: Literal["bytes", "packets"] = "bytes"
    length: int = DEFAULT_QUEUE_BYTES
    discipline: Discipline = "drop-tail"
    target_ms: float = 5.0
    interval_ms: float = 100.0

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert input in the form of `to_json` to field values; return other input unchanged."""
        if not isinstance(data, dict):
            return data
        units = {unit: data[unit] for unit in ("bytes", "packets") if unit in data}
        return {**data, **{key: value for unit in units for key, value in (("unit", unit), ("length", units[unit]))}}

    @model_serializer
    def to_json(self) -> QueueJson:
        """Return the queue as in manifest.json.

        Examples: ``{"bytes": 150000}``, ``{"packets": 100, "discipline": "codel", "target_ms": 5, …}``.
        """
        described: QueueJson = {"bytes": self.length} if self.unit == "bytes" else {"packets": self.length}
        if self.discipline != "drop-tail":
            described["discipline"] = self.discipline
        if self.discipline in CONTROLLED:
            described["target_ms"], described["interval_ms"] = self.target_ms, self.interval_ms
        return described

    def __str__(self) -> str:
        """Return the queue as text, like the value in a link file: ``100 packets, codel 5 ms / 100 ms``."""
        words = [format_size(self.length) if self.unit == "bytes" else f"{self.length} packets"]
        if self.discipline in CONTROLLED:
            times = f"{format_duration_ms(self.target_ms)} / {format_duration_ms(self.interval_ms)}"
            words.append(f"{self.discipline} {times}")
        elif self.discipline != "drop-tail":
            words.append(self.discipline)
        return ", ".join(words)


class GilbertElliottJson(TypedDict):
    """Model of burst losses as written in records."""

    p_percent: float
    r_percent: float
    good_loss_percent: float
    bad_loss_percent: float


@dataclass(frozen=True, config=CONFIG)
class GilbertElliott:
    """Burst losses: a good and a bad state, each with its own loss rate (Elliott 1963).

    Attributes:
        p_percent: probability per packet of a change from the good to the bad state.
        r_percent: probability per packet of a change from the bad to the good state.
        good_loss_percent: loss rate in the good state.
        bad_loss_percent: loss rate in the bad state.
    """

    p_percent: float
    r_percent: float
    good_loss_percent: float = 0.0
    bad_loss_percent: float = 100.0

    def to_json(self) -> GilbertElliottJson:
        """Return the loss model as `linkem` reads it."""
        return {
            "p_percent": self.p_percent,
            "r_percent": self.r_percent,
            "good_loss_percent": self.good_loss_percent,
            "bad_loss_percent": self.bad_loss_percent,
        }

    @property
    def mean_percent(self) -> float:
        """Long-run loss rate, percent of the packets; p / (p + r) of the packets meet the bad state."""
        bad = self.p_percent / (self.p_percent + self.r_percent)
        return self.good_loss_percent * (1 - bad) + self.bad_loss_percent * bad

    @property
    def correlation(self) -> float:
        """Correlation of the states of two consecutive packets: 1 - p - r, at least 0."""
        return max(1 - (self.p_percent + self.r_percent) / 100, 0.0)

    def __str__(self) -> str:
        """Return the model as text: ``1 % in bursts (p 0.2 %, r 20 %)``. Loss rates that are not defaults are added."""
        parts = [f"p {format_percent(self.p_percent)}", f"r {format_percent(self.r_percent)}"]
        if self.good_loss_percent:
            parts.append(f"good {format_percent(self.good_loss_percent)}")
        if self.bad_loss_percent != 100.0:
            parts.append(f"bad {format_percent(self.bad_loss_percent)}")
        return f"{self.mean_percent:.3g} % in bursts ({', '.join(parts)})"


Loss = float | GilbertElliott
"""Percentage of packets lost at random, or a model of bursts."""


class DirectionJson(TypedDict, total=False):
    """Condition of one direction of a path as written in records."""

    rate_kbps: float
    """0: unlimited. Not with a trace."""
    delay_ms: float
    jitter_ms: float
    jitter_distribution: Distribution
    loss_model: GilbertElliottJson
    loss_percent: float
    """Absent with a loss model."""
    reorder_percent: float
    duplicate_percent: float
    queue: QueueJson
    middlebox: Middlebox
    trace: TraceJson


@dataclass(frozen=True, config=CONFIG)
class Direction:
    """Condition of one direction of a path: rate, delay, jitter, loss, reordering, duplicates, queue."""

    rate_kbps: float | None = None
    """None: unlimited, or by `trace`."""
    delay_ms: float = 0.0
    jitter_ms: float = 0.0
    distribution: Distribution = "uniform"
    """Distribution of the jitter: ± `jitter_ms`, or `jitter_ms` as the standard deviation of netem's tables."""
    loss: Loss = 0.0
    reorder_percent: float = 0.0
    """Percentage of packets that skip the delay and so overtake others."""
    duplicate_percent: float = 0.0
    queue: Queue = Queue()
    trace: RecordedTrace | None = None
    middlebox: Middlebox = "none"

    @property
    def loss_percent(self) -> float:
        """Long-run loss rate, percent of the packets."""
        return self.loss.mean_percent if isinstance(self.loss, GilbertElliott) else self.loss

    @model_validator(mode="before")
    @classmethod
    def _from_json(cls, data: object) -> object:
        """Convert input in the form of `to_json` to field values; return other input unchanged."""
        if not isinstance(data, dict):
            return data
        names = (("distribution", "jitter_distribution"), ("loss", "loss_percent"), ("loss", "loss_model"))
        values = {**data, **{name: data[key] for name, key in names if data.get(key) is not None}}
        return {**values, "rate_kbps": data.get("rate_kbps") or None}

    @model_serializer
    def to_json(self) -> DirectionJson:
        """Return the direction as in manifest.json: rate, delay, jitter, loss, and other values that are not defaults.

        A trace is recorded by name and SHA-256. Raises ValueError: the trace file is wrong.
        """
        described = self._described()
        if self.trace is not None:
            described["trace"] = self.trace.to_json()
        return described

    def to_linkem(self) -> dict[str, object]:
        """Return the direction as ``linkem`` reads it (docs/linkem.md); `rate_kbps` 0 is unlimited."""
        trace = {"trace": str(self.trace.file.resolve())} if self.trace is not None else {}
        return {**self._described(), **trace}

    def _described(self) -> DirectionJson:
        described: DirectionJson = {}
        if self.trace is None:
            described["rate_kbps"] = self.rate_kbps or 0.0
        described["delay_ms"], described["jitter_ms"] = self.delay_ms, self.jitter_ms
        if self.distribution != "uniform":
            described["jitter_distribution"] = self.distribution
        if isinstance(self.loss, GilbertElliott):
            described["loss_model"] = self.loss.to_json()
        else:
            described["loss_percent"] = self.loss
        if self.reorder_percent:
            described["reorder_percent"] = self.reorder_percent
        if self.duplicate_percent:
            described["duplicate_percent"] = self.duplicate_percent
        described["queue"] = self.queue.to_json()
        if self.middlebox != "none":
            described["middlebox"] = self.middlebox
        return described

    def text(self, key: str) -> str:
        """Return, as text, the value that a link file would give for `key`: ``1 %`` for ``loss``. Raises KeyError."""
        return _TEXTS[key](self)

    def extras(self) -> list[str]:
        """Return the values that differ from their defaults as text: ``loss 1 %``, ``queue 100 packets``.

        Rate and delay are left out.
        """
        values = (
            ("loss", self.loss),
            ("jitter", self.jitter_ms),
            ("reorder", self.reorder_percent),
            ("duplicate", self.duplicate_percent),
            ("queue", self.queue != Queue()),
            ("middlebox", self.middlebox != "none"),
        )
        return [f"{key} {self.text(key)}" for key, value in values if value]


def _rate_text(way: Direction) -> str:
    if way.trace is not None:
        return f"trace {way.trace.name}"
    return UNLIMITED if way.rate_kbps is None else format_rate(way.rate_kbps)


def _jitter_text(way: Direction) -> str:
    jitter = format_duration_ms(way.jitter_ms)
    return jitter if way.distribution == "uniform" else f"{jitter} {way.distribution}"


def _loss_text(way: Direction) -> str:
    return str(way.loss) if isinstance(way.loss, GilbertElliott) else format_percent(way.loss)


_TEXTS: Mapping[str, Callable[[Direction], str]] = {
    "rate": _rate_text,
    "trace": _rate_text,
    "delay": lambda way: format_duration_ms(way.delay_ms),
    "jitter": _jitter_text,
    "distribution": lambda way: way.distribution,
    "loss": _loss_text,
    "reorder": lambda way: format_percent(way.reorder_percent),
    "duplicate": lambda way: format_percent(way.duplicate_percent),
    "queue": lambda way: str(way.queue),
    "middlebox": lambda way: way.middlebox,
}
