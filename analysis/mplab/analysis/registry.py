"""All metrics of several scenarios: a name means one thing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mplab.analysis.errors import MetricConflictError
from mplab.analysis.metric import Metric, describe_limits
from mplab.analysis.plugins import Plugin, default_folders, load


@dataclass(frozen=True)
class RegisteredMetric:
    """One metric, with the scenarios that score it."""

    metric: Metric
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scenario → names of the labels that the metric's values carry there."""


def register(plugins: Iterable[Plugin]) -> dict[str, RegisteredMetric]:
    """Name → metric, over all `plugins`. Labels and headlines may differ between scenarios, meanings may not.

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


def load_registry(folders: Sequence[Path] | None = None) -> dict[str, RegisteredMetric]:
    """The metrics of every scenario in `folders` (``ui-scenarios`` of the checkout when None), by their names.

    Raises:
        MetricConflictError: see `register`.
        ScenarioMissingError: a ``scores.py`` cannot be used.
    """
    folders = default_folders() if folders is None else folders
    names = sorted({path.parent.name for folder in folders for path in folder.glob("*/scores.py")})
    return register(load(name, folders) for name in names)


def _differences(one: Metric, other: Metric) -> str:
    """How two metrics of one name differ, for people; "" when they mean the same."""
    parts = (
        ("title", one.title, other.title),
        ("unit", one.unit, other.unit),
        ("direction", one.better, other.better),
        ("source", one.source, other.source),
        ("limits", describe_limits(one), describe_limits(other)),
    )
    return "; ".join(f"{what} {a!r} and {b!r}" for what, a, b in parts if a != b)
