"""The metrics of all scenarios together."""

import pytest

from mplab.analysis.scores.plugins import load, register
from mplab.base.plugins import SCENARIOS


def test_every_metric_of_every_scenario_has_a_source_and_one_meaning() -> None:
    metrics = register(load(name) for name in SCENARIOS)
    assert {"download_time", "page_load_time", "jitter", "wifi_bytes"} <= set(metrics)
    assert [name for name, entry in metrics.items() if not entry.metric.source] == []
    assert [name for name, entry in metrics.items() if not entry.metric.title] == []


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_every_headline_metric_has_the_words_of_its_answer(name: str) -> None:
    headlines = [metric for metric in load(name).metrics if metric.headline]
    assert headlines
    for metric in headlines:
        assert metric.activity, metric.name
        assert metric.outcome.count("{value}") == 1, metric.name
        written = metric.activity_of(tuple((label, "x") for label in metric.labels))
        assert "{" not in written, metric.name
        assert all(f"{{{label}}}" in metric.activity for label in metric.labels), metric.name
