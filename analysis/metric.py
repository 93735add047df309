"""What a scenario folder's ``scores.py`` declares and returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Observation: TypeAlias = Mapping[str, Any]
"""One line of ``scenario.jsonl``: ``{"t": <unix s>, "event": NAME, …}``."""


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


@dataclass(frozen=True)
class Value:
    """One measured value of one cell."""

    metric: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)
