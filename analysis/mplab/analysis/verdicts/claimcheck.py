"""Check a claim of an experiment before the run: metrics, units, labels and statistic must exist."""

from collections.abc import Iterator, Mapping, Sequence

from mplab.analysis.metric import Metric, in_unit, units_like
from mplab.base.suggest import unknown
from mplab.format.claim import LINKS, Claim
from mplab.format.experiment import ExperimentBase


def check_claim(claim: Claim, metrics: Mapping[str, Sequence[Metric]], experiment: ExperimentBase) -> str:
    """Return an error message if the scenarios cannot give the values that a claim needs, else "".

    Args:
        claim: a claim of the experiment.
        metrics: scenario label → metrics of the scenario.
        experiment: the experiment.
    """
    if claim.not_measurable:
        return ""
    return next(_problems(claim, metrics, experiment), "")


def _problems(claim: Claim, metrics: Mapping[str, Sequence[Metric]], experiment: ExperimentBase) -> Iterator[str]:
    scenarios = [label for label in metrics if not claim.scenarios or label in claim.scenarios]
    elsewhere = [claim.against_scenario] if claim.against_scenario in metrics else []
    for name, places in ((claim.metric, scenarios), (claim.metric, elsewhere), (claim.other_metric, scenarios)):
        if name and places and not _named(name, places, metrics):
            yield unknown("metric", name, sorted({metric.name for label in places for metric in metrics[label]}))
    for label in claim.scenarios:
        if label in metrics and not _named(claim.metric, [label], metrics):
            yield f"scenario '{label}' has no metric {claim.metric!r}"
    metric = next(iter(_named(claim.metric, scenarios, metrics)), None)
    if metric is None:
        return
    yield from _unit_problems(claim, metric)
    yield from _label_problems(claim, metric)
    if metric.better == "neither" and claim.kind in ("gain", "no_difference") and len(claim.against) > 1:
        yield f"{metric.name} has no better side: 'against' must name one transport, not {len(claim.against)}"
    if metric.better == "neither" and claim.kind == "share" and claim.of_pairs:
        yield f"the share of better pairs needs a metric with a better side; {metric.name} has none"
    trend = claim.trend
    if trend is not None and trend.form == "crossover" and metric.better == "neither":
        yield f"'crossover' needs a metric with a better side; {metric.name} has none"
    if trend is not None and trend.along == LINKS and len(claim.links or experiment.links) < 2:
        yield "a trend along links needs two link conditions or more"


def _named(name: str, scenarios: Sequence[str], metrics: Mapping[str, Sequence[Metric]]) -> list[Metric]:
    return [metric for label in scenarios for metric in metrics[label] if metric.name == name]


def _unit_problems(claim: Claim, metric: Metric) -> Iterator[str]:
    if claim.of_pairs:
        return
    if claim.kind == "share" and metric.unit != "%":
        yield f"'share' needs a metric in percent; {metric.name} is in {metric.unit or 'no unit'}"
    if claim.kind == "value" and claim.claimed is not None:
        unit = claim.claimed.unit
        if in_unit(1.0, metric.unit, unit) is None:
            allowed = ", ".join(units_like(metric.unit)) or "a number alone"
            yield f"value of {metric.name}: found unit {unit or 'none'!r}, allowed: {allowed}"


def _label_problems(claim: Claim, metric: Metric) -> Iterator[str]:
    allowed = ", ".join(metric.labels) or "none"
    trend = claim.trend
    along = [trend.along] if trend is not None and trend.along != LINKS else []
    for key, names in (("labels", claim.labels), ("pooled_labels", claim.pooled_labels), ("along", along)):
        for name in names:
            if name not in metric.labels:
                yield f"{key}: {metric.name} has no label {name!r}. Allowed: {allowed}"
