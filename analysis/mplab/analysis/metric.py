"""Define metrics, which a scenario's ``scores.py`` declares, and their values; convert units, and sort labels."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Observation: TypeAlias = Mapping[str, Any]
"""A line of ``scenario.jsonl``: ``{"t": <Unix s>, "event": NAME, …}``."""

Limits: TypeAlias = tuple[float | None, float | None]
"""(smallest, largest) possible value of a metric; None: no limit."""

NOT_NEGATIVE: Limits = (0.0, None)
Labels = tuple[tuple[str, str], ...]
LabelsKey = tuple[tuple[str, float, tuple[tuple[bool, int, str], ...]], ...]
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGT]i?)?[A-Za-z/%]*")
_PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_UNIT_KINDS = (
    {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0},
    {"kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    {"B": 1.0, "bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
)


@dataclass(frozen=True)
class Metric:
    """A quantity, such as download time, that a scenario's ``scores.py`` computes for each cell."""

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher", "neither"]
    labels: tuple[str, ...] = ()
    """Names of the labels of every value, e.g. ``("size",)``."""
    headline: bool = False
    """True: the metric is shown first in the report, which names its best transport."""
    source: str = ""
    """Source of the definition: a paper with its section, a Recommendation, an RFC."""
    limits: Limits = (None, None)
    """Smallest and largest allowed value, in `unit`; a value outside of them is an error in ``scores.py``."""
    activity: str = ""
    """What the user does, as the start of a sentence: ``Downloading {size}``; ``{label}`` is the value of a label."""
    outcome: str = "takes {value}"
    """Result of a transport, as the predicate of that sentence; ``{value}`` is the value with its unit.

    The plural of a noun behind the value loses its ``s`` when the value is 1: ``has {value} silences``.
    """
    way: Literal["down", "up"] = "down"
    """Direction of most of the payload. A label ``direction`` overrides it."""
    traced: bool = False
    """True: computed from the tables of the captures for every scenario; the report shows it without figures."""

    def activity_of(self, labels: Labels) -> str:
        """Return `activity` with the values of ``labels``; without an activity, the title and the labels."""
        if not self.activity:
            return " · ".join((self.title, *(value for _, value in labels)))
        text = self.activity
        for name, value in labels:
            text = text.replace(f"{{{name}}}", value)
        return text

    def outcome_of(self, value: str) -> str:
        """Return `outcome` with a formatted value."""
        text = re.sub(r"({value} \w+)s\b", r"\1", self.outcome) if value == "1" else self.outcome
        return text.replace("{value}", value)


@dataclass(frozen=True)
class Value:
    """The value of a metric in one cell."""

    metric: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
    repeat: int = 0
    """Number of the repetition inside the cell, from 1; 0: the cell has no repetitions."""


def describe_limits(metric: Metric) -> str:
    """Return the limits of a metric as text: ``0 … 100``, ``≥ 0`` or ``≤ 4.5``; "" without limits."""
    least, most = metric.limits
    if least is not None and most is not None:
        return f"{least:g} … {most:g}"
    if least is not None:
        return f"≥ {least:g}"
    return "" if most is None else f"≤ {most:g}"


INTERFACE_BYTES: tuple[Metric, ...] = (
    Metric("wifi_bytes", "Bytes on WiFi", "kB", "neither", source="baerts2015 ch. 4", limits=NOT_NEGATIVE),
    Metric("cellular_bytes", "Bytes on LTE", "kB", "lower", source="baerts2015 ch. 4", limits=NOT_NEGATIVE),
)
"""Metrics of every scenario: bytes on the phone's interfaces while it runs, in both directions, with all headers."""

LOOK_RESOLUTION = Metric(
    "look_resolution",
    "Times were read from the screen (Android): the longest time between two looks",
    "s",
    "lower",
    source="chen2014 §4.2.2; docs/scenarios.md",
    limits=NOT_NEGATIVE,
)
"""The longest time between two readings of the screen, s, when times are read from the screen.

A scenario declares it if its app can report times itself, or can be observed only on the screen. A cell has a value
only if its times were read from the screen.
"""


def look_resolution(observations: Iterable[Observation]) -> list[Value]:
    """Return a list with one value, of the metric `LOOK_RESOLUTION`: the largest ``resolution_s`` of the observations.

    The list is empty if no observation has this key.
    """
    resolutions_s = [float(item["resolution_s"]) for item in observations if item.get("resolution_s") is not None]
    return [Value("look_resolution", max(resolutions_s))] if resolutions_s else []


_INTERFACES = {"wlan0": "wifi_bytes", "rmnet0": "cellular_bytes"}


def interface_bytes(observation: Observation) -> Iterator[Value]:
    """Yield the values of the metrics `INTERFACE_BYTES` if the observation is ``traffic``, otherwise nothing."""
    if observation["event"] == "traffic":
        for interface, carried in observation["interfaces"].items():
            if metric := _INTERFACES.get(interface):
                yield Value(metric, (carried["bytes_up"] + carried["bytes_down"]) / 1000)


def label_sort_key(labels: Labels) -> LabelsKey:
    """Return a key to sort labels: first quantities, by size (10 kB, 1 MB); then words.

    Numbers in words are compared by value (a2, a10).
    """
    quantities = ((name, label_value(value), value) for name, value in labels)
    return tuple((name, math.inf if size is None else size, _natural(value)) for name, size, value in quantities)


def label_value(text: str) -> float | None:
    """Return the value of a label that is a quantity, without its prefix: 10000 for ``10 kB``; else None."""
    match = _QUANTITY.fullmatch(text.strip())
    return float(match[1]) * _PREFIX[match[2] or ""] if match else None


def _natural(text: str) -> tuple[tuple[bool, int, str], ...]:
    parts = re.findall(r"[0-9]+|[^0-9]+", text)
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts)


def in_unit(value: float, unit: str, wanted: str) -> float | None:
    """Convert ``value`` from ``unit`` to the unit ``wanted``; return None when the units are of different kinds."""
    if unit == wanted:
        return value
    for kind in _UNIT_KINDS:
        if unit in kind and wanted in kind:
            return value * kind[unit] / kind[wanted]
    return None


def units_like(unit: str) -> list[str]:
    """Return all units to which values in ``unit`` can be converted, including ``unit`` itself."""
    return next((list(kind) for kind in _UNIT_KINDS if unit in kind), [unit] if unit else [])
