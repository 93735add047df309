"""Judge the limits (budgets) that an experiment file sets for metrics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from mplab.analysis.errors import BudgetError
from mplab.analysis.metric import Metric, in_unit, units_like
from mplab.analysis.statistics.effects import Interval, median_interval, seed_of
from mplab.analysis.statistics.summaries import Group
from mplab.analysis.text import scale_of
from mplab.format.experiment import Budget, Limit

Verdict: TypeAlias = Literal["kept", "broken", "not judged"]

STATISTICS: Mapping[str, Callable[[Sequence[float], str], float]] = {
    "median": lambda values, _: float(np.median(values)),
    "mean": lambda values, _: float(np.mean(values)),
    "p75": lambda values, _: float(np.quantile(values, 0.75)),
    "p90": lambda values, _: float(np.quantile(values, 0.9)),
    "p95": lambda values, _: float(np.quantile(values, 0.95)),
    "worst": lambda values, better: min(values) if better == "higher" else max(values),
}


@dataclass(frozen=True)
class Measured:
    """The values of a transport for a metric; ``labels`` has the values of its labels, sorted by the labels' names."""

    scenario: str
    link: str
    transport: str
    metric: Metric
    labels: tuple[str, ...]
    values: Sequence[float]

    @property
    def name(self) -> str:
        """Return the name of these values in messages: ``web · mptcp · baseline · page_load_time · wiki``."""
        return " · ".join((self.scenario, self.transport, self.link, self.metric.name, *self.labels))


@dataclass(frozen=True)
class JudgedLimit:
    """A limit of a budget, compared with the values of one transport.

    The measured value ``found`` and the limit ``limit`` are in ``unit``.

    ``certain``: both ends of the 95 % interval have the same verdict as the value. Only medians have an interval.
    """

    budget: Budget
    about: str
    verdict: Verdict
    text: str
    """Measured value and limit in one sentence, with units."""
    found: float | None = None
    limit: float | None = None
    unit: str = ""
    certain: bool = False
    place: tuple[str, str, str] | None = None
    """Scenario, link and transport of the values; None: there are none."""


def is_about(budget: Budget, measured: Measured) -> bool:
    """Return whether a budget applies to these values."""
    return (
        budget.metric == measured.metric.name
        and budget.transport in {"", measured.transport}
        and (not budget.scenarios or measured.scenario in budget.scenarios)
        and (not budget.links or measured.link in budget.links)
        and set(budget.labels.values()) <= set(measured.labels)
    )


def measured_in(groups: Iterable[Group]) -> list[Measured]:
    """Return a `Measured` per group and transport; transports without values are left out.

    A group has the values of all transports for one metric with its labels, in one scenario under one link condition.
    """
    return [
        Measured(group.scenario, group.link, s.transport.label, group.metric, labels, s.numbers)
        for group in groups
        for labels in (tuple(value for _, value in group.labels),)
        for s in group.measured
    ]


def judge_limits(budgets: Iterable[Budget], measured: Sequence[Measured], seed: int) -> list[JudgedLimit]:
    """Judge each limit by the values of each transport, metric and labels to which its budget applies.

    A limit that applies to no measured values counts as broken.

    Raises:
        BudgetError: a limit cannot be converted to its metric's unit.
    """
    judged: list[JudgedLimit] = []
    for budget in budgets:
        limits = [(limit, most) for limit, most in ((budget.at_most, True), (budget.at_least, False)) if limit]
        own = [series for series in measured if is_about(budget, series)]
        judged += [_judge(budget, limit, series, seed, most=most) for series in own for limit, most in limits]
        if limits and not own:
            judged.append(JudgedLimit(budget, budget.metric, "broken", f"{budget.metric}: not measured"))
    return judged


def limit_in_unit(limit: Limit, metric: Metric) -> float:
    """Return a limit in the metric's unit. Raises BudgetError when its unit cannot be converted."""
    value = in_unit(limit.value, limit.unit, metric.unit)
    if value is None:
        allowed = ", ".join(units_like(metric.unit)) or "a number alone"
        raise BudgetError(f"budget of {metric.name}: found {limit.text!r}, allowed: {allowed}")
    return value


def _judge(budget: Budget, limit: Limit, series: Measured, seed: int, *, most: bool) -> JudgedLimit:
    bound = limit_in_unit(limit, series.metric)
    value = STATISTICS[budget.statistic](series.values, series.metric.better)
    good = value <= bound if most else value >= bound
    interval: Interval | None = None
    if budget.statistic == "median":
        interval = median_interval(series.values, seed_of(seed, "budget", series.name))
    ends = (interval.low, interval.high) if interval else ()
    certain = bool(ends) and all((end <= bound if most else end >= bound) is good for end in ends)
    scale = scale_of(series.metric.unit, (value, bound))
    allowed = f"{'at most' if most else 'at least'} {bound * scale.factor:.10g} {scale.unit}".rstrip()
    text = f"{budget.statistic} {scale.text(value)}, allowed: {allowed} (n = {len(series.values)})"
    return JudgedLimit(
        budget,
        series.name,
        "kept" if good else "broken",
        text,
        value,
        bound,
        series.metric.unit,
        certain,
        (series.scenario, series.link, series.transport),
    )


def check_budget(budget: Budget, metrics: Mapping[str, Sequence[Metric]]) -> str:
    """Return an error message if a budget cannot apply to the metrics of the scenarios, else "".

    Args:
        budget: a budget of the experiment, from the manifest.
        metrics: scenario label → metrics of the scenario.
    """
    about = [label for label in metrics if not budget.scenarios or label in budget.scenarios]
    metrics_of_budget = [metric for label in about for metric in metrics[label] if metric.name == budget.metric]
    if not metrics_of_budget:
        known = sorted({metric.name for label in about for metric in metrics[label]})
        return f"unknown metric {budget.metric!r}. Allowed: {', '.join(known)}"
    metric = metrics_of_budget[0]
    names = sorted({name for other in metrics_of_budget for name in other.labels})
    for label in budget.labels:
        if label not in names:
            return f"labels: {metric.name} has no label {label!r}. Allowed: {', '.join(names) or 'none'}"
    for limit in (budget.at_most, budget.at_least):
        if limit is not None:
            try:
                limit_in_unit(limit, metric)
            except BudgetError as error:
                return str(error)
    if budget.no_worse_than_percent is not None and metric.better == "neither":
        return f"'no_worse_than' needs a metric with a better side; {metric.name} has none"
    return ""
