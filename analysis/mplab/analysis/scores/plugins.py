"""Load the modules ``scores`` of scenarios, and collect their metrics; a metric's name must have one meaning."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

import polars as pl

from mplab.analysis.errors import MetricConflictError, ScenarioMissingError
from mplab.analysis.metric import Metric, Observation, Value, describe_limits
from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import SCENARIOS

MODULE = "scores"
Score: TypeAlias = Callable[[Sequence[Observation], Mapping[str, pl.DataFrame], Path], list[Value]]
"""Function from observations, tables and folder of a cell to the values of the cell."""


@dataclass(frozen=True)
class ScoringPlugin:
    """Metrics and score function that a scenario's module ``scores`` declares."""

    name: str
    metrics: tuple[Metric, ...]
    score: Score


def load(name: str) -> ScoringPlugin:
    """Load the module ``scores`` of a scenario, and return its metrics and score function.

    Args:
        name: name of a registered scenario. It is never used as a path, since it can come from anyone's manifest.

    Raises:
        InputError: two distributions register the same name.
        ScenarioMissingError: no scenario of this name is registered, or its ``scores`` cannot be used.
    """
    if name not in SCENARIOS:
        known = ", ".join(SCENARIOS) or "none"
        raise ScenarioMissingError(f"scenario {name!r}: not registered. Registered: {known}")
    plugin = SCENARIOS[name]
    try:
        metrics, score = (plugin.load(attribute, MODULE) for attribute in ("METRICS", "score"))
    except LabNotReadyError as error:
        raise ScenarioMissingError(str(error)) from error
    where = f"scenario {name}: {plugin.module}.{MODULE} (of {plugin.distribution})"
    if not isinstance(metrics, tuple | list) or not all(isinstance(metric, Metric) for metric in metrics):
        raise ScenarioMissingError(f"{where}: METRICS is not a tuple of mplab.analysis.metric.Metric")
    if not callable(score):
        raise ScenarioMissingError(f"{where}: it has no function score(observations, tables, folder)")
    return ScoringPlugin(name, tuple(metrics), cast("Score", score))


@dataclass(frozen=True)
class RegisteredMetric:
    """A metric with the scenarios that declare it."""

    metric: Metric
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scenario name → names of the labels that the metric has in this scenario."""


def register(plugins: Iterable[ScoringPlugin]) -> dict[str, RegisteredMetric]:
    """Return name → metric with its scenarios, for all metrics of ``plugins``.

    ``labels`` and ``headline`` of a metric can differ between scenarios; its meaning must not.

    Raises:
        MetricConflictError: two metrics of one name differ in title, unit, direction, source or limits, or one
            scenario declares a name twice.
    """
    registry: dict[str, RegisteredMetric] = {}
    for plugin in plugins:
        for metric in plugin.metrics:
            known = registry.setdefault(metric.name, RegisteredMetric(metric))
            if plugin.name in known.labels:
                raise MetricConflictError(f"scenario {plugin.name}: METRICS has {metric.name} twice")
            if differences := _differences(known.metric, metric):
                raise MetricConflictError(
                    f"metric {metric.name} means different things: {differences} "
                    f"({next(iter(known.labels))}, {plugin.name}); give one of them another name"
                )
            registry[metric.name] = RegisteredMetric(known.metric, {**known.labels, plugin.name: metric.labels})
    return registry


def _differences(metric: Metric, other: Metric) -> str:
    """Return the differences of two definitions of a metric as text (``unit 's' and 'ms'``); "" without any."""
    parts = (
        ("title", metric.title, other.title),
        ("unit", metric.unit, other.unit),
        ("direction", metric.better, other.better),
        ("source", metric.source, other.source),
        ("limits", describe_limits(metric), describe_limits(other)),
    )
    return "; ".join(f"{name} {a!r} and {b!r}" for name, a, b in parts if a != b)
