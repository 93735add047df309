"""The metrics of all scenarios together."""

from mplab.analysis.scores.plugins import load, register
from mplab.base.plugins import SCENARIOS


def test_every_metric_of_every_scenario_has_a_source_and_one_meaning() -> None:
    metrics = register(load(name) for name in SCENARIOS)
    assert {"download_time", "page_load_time", "jitter", "wifi_bytes"} <= set(metrics)
    assert [name for name, entry in metrics.items() if not entry.metric.source] == []
    assert [name for name, entry in metrics.items() if not entry.metric.title] == []
