"""Collect the metrics of several scenarios; each name must have one meaning."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mplab.analysis.errors import MetricConflictError
from mplab.analysis.metric import Metric, describe_limits
from mplab.analysis.scores.plugins import ScoringPlugin, load
from mplab.base.plugins import SCENARIOS


@dataclass(frozen=True)
class RegisteredMetric:
    """A metric, with the scenarios that score it."""

    metric: Metric
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scenario name → names of the labels that the metric has in this scenario."""


def register(plugins: Iterable[ScoringPlugin]) -> dict[str, RegisteredMetric]:
    """Return name → metric for all ``plugins``.

    ``labels`` and ``headline`` of a metric can differ between scenarios; its meaning must not.

    Raises:
        MetricConflictError: two metrics of one name differ in title, unit, direction, source or limits, or one
            scenario declares a name twice.
    """
    found: dict[str, RegisteredMetric] = {}
    for plugin in plugins:
        for metric in plugin.metrics:
            known = found.setdefault(metric.name, RegisteredMetric(metric))
            if plugin.name in known.labels:
                raise MetricConflictError(f"scenario {plugin.name}: METRICS has {metric.name} twice")
            if differences := _differences(known.metric, metric):
                raise MetricConflictError(
                    f"metric {metric.name} means different things: {differences} "
                    f"({next(iter(known.labels))}, {plugin.name}); give one of them another name"
                )
            found[metric.name] = RegisteredMetric(known.metric, {**known.labels, plugin.name: metric.labels})
    return found


def load_registry() -> dict[str, RegisteredMetric]:
    """Return the metrics of every registered scenario, by their names.

    Raises:
        MetricConflictError: see `register`.
        ScenarioMissingError: a scenario's ``scores`` cannot be used.
    """
    return register(load(name) for name in SCENARIOS)


def _differences(one: Metric, other: Metric) -> str:
    """Return the differences of two metrics with one name, as text; "" when there are none."""
    parts = (
        ("title", one.title, other.title),
        ("unit", one.unit, other.unit),
        ("direction", one.better, other.better),
        ("source", one.source, other.source),
        ("limits", describe_limits(one), describe_limits(other)),
    )
    return "; ".join(f"{what} {a!r} and {b!r}" for what, a, b in parts if a != b)
