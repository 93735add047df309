"""Return all metrics of a scenario: those of its plug-in, of the changes of the paths and of the traces."""

from collections.abc import Mapping, Sequence

from mplab.analysis.metric import Metric
from mplab.analysis.scores import changes, traced
from mplab.analysis.scores.plugins import ScoringPlugin, load


def scoring_of(name: str) -> ScoringPlugin:
    """Return the scoring plug-in of a scenario, which also computes the metrics of changes and of the traces.

    Raises:
        ScenarioMissingError: see `mplab.analysis.scores.plugins.load`.
    """
    return traced.extended(changes.extended(load(name)))


def metrics_of(scenarios: Mapping[str, str]) -> dict[str, Sequence[Metric]]:
    """Return label → metrics of each scenario; ``scenarios`` is label → name of the scenario.

    Raises:
        ScenarioMissingError: see `mplab.analysis.scores.plugins.load`.
    """
    return {label: scoring_of(name).metrics for label, name in scenarios.items()}
