"""What a scenario folder's ``scores.py`` declares and returns."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Observation: TypeAlias = Mapping[str, Any]
"""One line of ``scenario.jsonl``: ``{"t": <unix s>, "event": NAME, …}``."""

Limits: TypeAlias = tuple[float | None, float | None]
"""The least and the most that is possible; None: no such limit."""

NOT_NEGATIVE: Limits = (0.0, None)


@dataclass(frozen=True)
class Metric:
    """One quantity that a scenario scores."""

    name: str
    title: str
    unit: str
    better: Literal["lower", "higher", "neither"]
    labels: tuple[str, ...] = ()
    """Names of the labels that every value of it carries, e.g. ``("size",)``."""
    headline: bool = False
    """True: shown first in the report, compared between transports."""
    source: str = ""
    """Where the definition comes from: a paper with its section, a Recommendation, an RFC."""
    limits: Limits = (None, None)
    """In `unit`; a value beyond them is a mistake of the scores."""


@dataclass(frozen=True)
class Value:
    """One measured value of one cell."""

    metric: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


def describe_limits(metric: Metric) -> str:
    """``0 … 100``, ``at least 0``, ``at most 4.5``; "" without limits."""
    least, most = metric.limits
    if least is not None and most is not None:
        return f"{least:g} … {most:g}"
    if least is not None:
        return f"at least {least:g}"
    return "" if most is None else f"at most {most:g}"


INTERFACE_BYTES: tuple[Metric, ...] = (
    Metric("wifi_bytes", "Bytes on WiFi", "kB", "neither", source="baerts2015 ch. 4", limits=NOT_NEGATIVE),
    Metric("cellular_bytes", "Bytes on LTE", "kB", "lower", source="baerts2015 ch. 4", limits=NOT_NEGATIVE),
)
"""What the phone's interfaces carried while the scenario ran, both directions, with all headers: of every scenario."""

LOOK_RESOLUTION = Metric(
    "look_resolution",
    "Times were read from the screen (Android): the longest time between two looks",
    "s",
    "lower",
    source="chen2014 §4.2.2; docs/scenarios.md",
    limits=NOT_NEGATIVE,
)
"""Of scenarios with apps that tell nothing of themselves; without a value, their times are the app's own."""


def look_resolution(observations: Iterable[Observation]) -> list[Value]:
    """The value of `LOOK_RESOLUTION`: the worst of all observations; none when none has one."""
    found = [float(item["resolution_s"]) for item in observations if item.get("resolution_s") is not None]
    return [Value("look_resolution", max(found))] if found else []


_INTERFACES = {"wlan0": "wifi_bytes", "rmnet0": "cellular_bytes"}


def interface_bytes(observation: Observation) -> Iterator[Value]:
    """Values of `INTERFACE_BYTES` from the observation ``traffic``, with which every cell ends; none from another."""
    if observation["event"] == "traffic":
        for interface, carried in observation["interfaces"].items():
            if metric := _INTERFACES.get(interface):
                yield Value(metric, (carried["bytes_up"] + carried["bytes_down"]) / 1000)
