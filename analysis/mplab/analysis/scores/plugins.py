"""Load a scenario's module ``scores`` by the scenario's name."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast

import polars as pl

from mplab.analysis.errors import ScenarioMissingError
from mplab.analysis.metric import Metric, Observation, Value
from mplab.base.errors import LabNotReadyError
from mplab.base.plugins import SCENARIOS

MODULE = "scores"
Score: TypeAlias = Callable[[Sequence[Observation], Mapping[str, pl.DataFrame], Path], list[Value]]
"""Observations, tables and folder of a cell → its values."""


@dataclass(frozen=True)
class ScoringPlugin:
    """Metrics and score function of a scenario."""

    name: str
    metrics: tuple[Metric, ...]
    score: Score


def load(name: str) -> ScoringPlugin:
    """Load a scenario's scores.

    Args:
        name: name of a registered scenario. It is never used as a path, since it can come from anyone's manifest.

    Raises:
        InputError: two distributions register the same name.
        ScenarioMissingError: no scenario of this name is registered, or its ``scores`` cannot be used.
    """
    if name not in SCENARIOS:
        known = ", ".join(SCENARIOS) or "none"
        raise ScenarioMissingError(f"scenario {name!r}: none of this name is registered; there is: {known}")
    plugin = SCENARIOS[name]
    try:
        metrics, score = (plugin.load(attribute, MODULE) for attribute in ("METRICS", "score"))
    except LabNotReadyError as error:
        raise ScenarioMissingError(str(error)) from error
    where = f"scenario {name}: {plugin.module}.{MODULE} (of {plugin.distribution})"
    if not isinstance(metrics, tuple | list) or not all(isinstance(metric, Metric) for metric in metrics):
        raise ScenarioMissingError(f"{where}: METRICS is not a tuple of mplab.analysis.metric.Metric")
    if not callable(score):
        raise ScenarioMissingError(f"{where}: there is no function score(observations, tables, folder)")
    return ScoringPlugin(name, tuple(metrics), cast("Score", score))
