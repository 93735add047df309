"""Link conditions: what the path over WiFi and the path over LTE are like."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from orchestrator.errors import InputError
from orchestrator.spec.check import Checker
from orchestrator.spec.names import Name, is_name
from orchestrator.spec.suggest import show, unknown
from orchestrator.spec.units import (
    DurationMs,
    Percent,
    format_duration_ms,
    format_percent,
    format_rate,
    format_size,
    parse_rate_kbps,
    parse_size_bytes,
)
from orchestrator.spec.yaml import load_yaml

DEFAULT_QUEUE_BYTES = 150_000
SMALLEST_QUEUE_BYTES = 1514
"""One full Ethernet frame: a smaller queue lets no full packet pass."""

UNLIMITED = "unlimited"


@dataclass(frozen=True)
class Queue:
    """The drop-tail queue before a link: so many bytes or so many packets."""

    unit: Literal["bytes", "packets"] = "bytes"
    length: int = DEFAULT_QUEUE_BYTES

    def to_json(self) -> dict[str, int]:
        """``{"bytes": 150000}`` or ``{"packets": 100}``."""
        return {self.unit: self.length}

    def __str__(self) -> str:
        """As in a link file."""
        return format_size(self.length) if self.unit == "bytes" else f"{self.length} packets"


@dataclass(frozen=True)
class PathCondition:
    """A path between phone and proxy. Loss, jitter and queue hold in each direction; so does half the RTT."""

    down_kbps: float | None
    """None: unlimited."""
    up_kbps: float | None
    rtt_ms: float
    loss_percent: float = 0.0
    jitter_ms: float = 0.0
    queue: Queue = Queue()

    def down_direction(self) -> dict[str, Any]:
        """Towards the phone, as ``linkem`` takes it (docs/design.md); `rate_kbps` 0 is unlimited."""
        return self._direction(self.down_kbps)

    def up_direction(self) -> dict[str, Any]:
        """From the phone, as ``linkem`` takes it (docs/design.md); `rate_kbps` 0 is unlimited."""
        return self._direction(self.up_kbps)

    def _direction(self, rate_kbps: float | None) -> dict[str, Any]:
        return {
            "rate_kbps": rate_kbps or 0.0,
            "delay_ms": self.rtt_ms / 2,
            "jitter_ms": self.jitter_ms,
            "loss_percent": self.loss_percent,
            "queue": self.queue.to_json(),
        }

    def __str__(self) -> str:
        """``7.04 Mbit/s down, 2.02 Mbit/s up, RTT 50 ms``, and what differs from the defaults."""
        down, up = (UNLIMITED if rate is None else format_rate(rate) for rate in (self.down_kbps, self.up_kbps))
        parts = [f"{down} down", f"{up} up", f"RTT {format_duration_ms(self.rtt_ms)}"]
        if self.loss_percent:
            parts.append(f"loss {format_percent(self.loss_percent)}")
        if self.jitter_ms:
            parts.append(f"jitter {format_duration_ms(self.jitter_ms)}")
        if self.queue != Queue():
            parts.append(f"queue {self.queue}")
        return ", ".join(parts)


@dataclass(frozen=True)
class LinkCondition:
    """Both paths of a phone."""

    name: str
    title: str
    source: str
    """Where the numbers come from: a paper with its table, a measurement."""
    wifi: PathCondition
    lte: PathCondition

    def paths(self) -> dict[str, PathCondition]:
        """The paths by the phone's interface: ``wlan0`` and ``rmnet0``."""
        return {"wlan0": self.wifi, "rmnet0": self.lte}

    def to_json(self) -> dict[str, Any]:
        """As in manifest.json: ``{name, title, source, paths: {wlan0: {down, up}, rmnet0: {down, up}}}``."""
        paths = {
            interface: {"down": path.down_direction(), "up": path.up_direction()}
            for interface, path in self.paths().items()
        }
        return {"name": self.name, "title": self.title, "source": self.source, "paths": paths}


def _parse_rate(found: object) -> float | None:
    if found == UNLIMITED:
        return None
    try:
        return parse_rate_kbps(found)
    except ValueError as error:
        raise ValueError(f"{error}; or {UNLIMITED!r}") from None


def _parse_queue(found: object) -> Queue:
    if isinstance(found, str) and (match := re.fullmatch(r"\s*([0-9]{1,9})\s*packets?\s*", found, re.ASCII)):
        packets = int(match[1])
        if packets == 0:
            raise ValueError(f"queue {show(found)}: must hold at least 1 packet")
        return Queue("packets", packets)
    try:
        size = parse_size_bytes(found)
    except ValueError as error:
        raise ValueError(f"queue: {error}; or packets, like '100 packets'") from None
    if size < SMALLEST_QUEUE_BYTES:
        raise ValueError(f"queue {show(found)}: no full packet fits: at least {SMALLEST_QUEUE_BYTES} B")
    return Queue("bytes", size)


_RATE_PATTERN = r"^\s*(unlimited|\+?[0-9]+(\.[0-9]+)?\s*[kMG]bit\/s)\s*$"
_QUEUE_PATTERN = r"^\s*\+?[0-9]+(\.[0-9]+)?\s*(packets?|B|kB|MB|GB|KiB|MiB|GiB)\s*$"

LinkRate = Annotated[
    float | None,
    BeforeValidator(_parse_rate),
    WithJsonSchema({"type": "string", "pattern": _RATE_PATTERN, "examples": ["7040 kbit/s", UNLIMITED]}),
]
QueueLength = Annotated[
    Queue,
    BeforeValidator(_parse_queue),
    PlainSerializer(str, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _QUEUE_PATTERN, "examples": ["150 kB", "100 packets"]}),
]


class PathFile(BaseModel):
    """One path as written in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    down: LinkRate = Field(description="Rate towards the phone, IP bytes; 'unlimited' for none.")
    up: LinkRate = Field(description="Rate from the phone, IP bytes; 'unlimited' for none.")
    rtt: DurationMs = Field(description="Round-trip time of an idle path; half of it in each direction.")
    loss: Percent = Field(0.0, description="Share of packets lost at random, in each direction.")
    jitter: DurationMs = Field(0.0, description="Variation of the one-way delay, in each direction.")
    queue: QueueLength = Field(Queue(), description="Drop-tail queue, in each direction: bytes or 'N packets'.")

    @model_validator(mode="after")
    def _jitter_within_delay(self) -> Self:
        if self.jitter > self.rtt / 2:
            jitter, delay = format_duration_ms(self.jitter), format_duration_ms(self.rtt / 2)
            raise ValueError(f"jitter {jitter} is more than the one-way delay {delay} (half the rtt)")
        return self

    def condition(self) -> PathCondition:
        """With units in the names."""
        return PathCondition(self.down, self.up, self.rtt, self.loss, self.jitter, self.queue)


class LinkFile(BaseModel):
    """A link condition as written in ``router-configs/links/<name>.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="mplab link condition")

    title: str = Field("", description="For people; default: the name.")
    source: str = Field("", description="Where the numbers come from.")
    wifi: PathFile
    lte: PathFile

    def condition(self, name: str) -> LinkCondition:
        """With its name and units."""
        return LinkCondition(name, self.title or name, self.source, self.wifi.condition(), self.lte.condition())


class InlineLinkFile(LinkFile):
    """A link condition written in the experiment file itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="inline link condition")

    name: Name = Field(description="Its name in the results.")


def list_links(links_dir: Path) -> list[str]:
    """The names of the link conditions in a folder, sorted."""
    return sorted(path.stem for path in links_dir.glob("*.yaml") if is_name(path.stem))


def load_link(name: str, links_dir: Path) -> LinkCondition:
    """The link condition ``<links_dir>/<name>.yaml``.

    Raises:
        InputError: no such condition, or its file is wrong.
    """
    names = list_links(links_dir)
    if name not in names:
        raise InputError(f"{unknown('link', name, names)} (files in {links_dir})")
    document = load_yaml(links_dir / f"{name}.yaml")
    checker = Checker(document)
    file = checker.model(LinkFile, document.data)
    checker.raise_problems()
    assert file is not None  # noqa: S101 - raise_problems has raised otherwise
    return file.condition(name)
