"""One registry of metrics: the meaning of each name, and the error when a name has two meanings."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mplab.analysis.errors import MetricConflictError
from mplab.analysis.metric import Metric
from mplab.analysis.pipeline import analyze
from mplab.analysis.scores.plugins import ScoringPlugin, register
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import TOY_SCORES, TRANSPORTS, Synthetic

TIME = Metric("time", "Time", "s", "lower", ("size",), source="RFC 1", limits=(0, 9))


def plugin(name: str, *metrics: Metric) -> ScoringPlugin:
    return ScoringPlugin(name, metrics, lambda _observations, _tables, _folder: [])


def test_labels_and_headlines_may_differ() -> None:
    other = replace(TIME, labels=(), headline=True)
    metrics = register([plugin("one", TIME), plugin("two", other)])
    assert metrics["time"].labels == {"one": ("size",), "two": ()}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(TIME, unit="ms"), "unit 's' and 'ms'"),
        (replace(TIME, better="higher"), "direction 'lower' and 'higher'"),
        (replace(TIME, title="Duration"), "title 'Time' and 'Duration'"),
        (replace(TIME, source="RFC 2"), "source 'RFC 1' and 'RFC 2'"),
        (replace(TIME, limits=(0, None)), "limits '0 … 9' and '≥ 0'"),
    ],
)
def test_a_name_with_two_meanings_is_refused(other: Metric, words: str) -> None:
    with pytest.raises(MetricConflictError) as caught:
        register([plugin("one", TIME), plugin("two", other)])
    assert str(caught.value) == f"metric time means different things: {words} (one, two); give one of them another name"


def test_a_name_twice_in_one_scenario_is_refused() -> None:
    with pytest.raises(MetricConflictError, match="scenario one: METRICS has time twice"):
        register([plugin("one", TIME, TIME)])


def test_a_run_whose_scenarios_contradict_each_other_is_not_analysed(
    synthetic: Callable[..., Synthetic], foreign: Foreign
) -> None:
    scenarios: list[dict[str, Any]] = [{"label": name, "name": name, "parameters": {}} for name in ("toy", "other")]
    builder = synthetic(repetitions=1, scenarios=scenarios, transports=TRANSPORTS[:1])
    run = builder.build()
    foreign.scenario("other", TOY_SCORES.replace('"Mbit/s"', '"kbit/s"'))
    with pytest.raises(MetricConflictError, match="metric goodput means different things: unit 'kbit/s' and 'Mbit/s'"):
        analyze(run)
