"""Metrics parse as OpenMetrics, and the Grafana dashboard uses only metrics that exist."""

import json
import re

from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from mplab.base.places import ROOT
from mplab.dashboard.openmetrics import exposition
from mplab.dashboard.render import HERE
from mplab.dashboard.watch import Watcher
from tests.unit.campaign.nights import T0
from tests.unit.dashboard.lab import Folders


def families(folders: Folders) -> dict[str, Metric]:
    text = exposition(Watcher([folders.path]).snapshot(now=T0 + 5000)).decode()
    assert text.endswith("# EOF\n")
    return {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]


def values(family: Metric, *labels: str) -> dict[tuple[str, ...], float]:
    return {tuple(sample.labels[label] for label in labels): sample.value for sample in family.samples}


def test_all_metrics(folders: Folders) -> None:
    run = folders.running()
    folders.ended()
    folders.ended(23, mptcp=0.25, size='1 "MB"\\')
    folders.night()
    with folders.held(run):
        found = families(folders)
    states = values(found["mplab_runs"], "state")
    assert (states[("running",)], states[("finished",)], states[("killed",)]) == (1, 2, 0)
    cells = values(found["mplab_last_run_cells"], "experiment", "outcome")
    assert (cells["demo", "ok"], cells["video", "invalid"], cells["video", "waiting"]) == (3, 1, 14)
    medians = values(found["mplab_last_run_median"], "experiment", "metric", "labels", "transport", "unit")
    assert medians == {
        ("demo", "time", '1 "MB"\\', "sptcp-wifi", "s"): 1.0,
        ("demo", "time", '1 "MB"\\', "mptcp", "s"): 0.25,
    }
    assert values(found["mplab_running_cells_done"], "experiment") == {("video",): 6}
    assert values(found["mplab_running_cell"], "cell", "step") == {("0007-web-mptcp-baseline-r1", "probe"): 1}
    jobs = values(found["mplab_campaign_jobs"], "campaign", "state")
    assert (jobs["nightly", "failed"], jobs["nightly", "done"]) == (1, 2)
    assert values(found["mplab_campaign_age_seconds"], "campaign") == {("nightly",): 5000 - 2005}
    assert values(found["mplab_resources"], "state") == {("free",): 4, ("busy",): 0, ("rests",): 0, ("quarantined",): 1}
    assert values(found["mplab_resource_quarantined"], "resource")[("phone-3",)] == 1
    assert all(value > 0 for value in values(found["mplab_disk_size_bytes"], "folder").values())


def test_an_empty_lab_has_metrics(folders: Folders) -> None:
    assert set(values(families(folders)["mplab_runs"], "state").values()) == {0}


def test_the_grafana_dashboard_uses_metrics_that_exist(folders: Folders) -> None:
    known = set(families(folders))
    dashboard = json.loads((HERE / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    used = {name for text in expressions for name in re.findall(r"\bmplab_\w+", text)}
    assert used <= known
    assert len(used) > 8
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)


def test_the_manual_lists_all_metrics(folders: Folders) -> None:
    page = (ROOT / "docs" / "dashboard.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if row.startswith("| `mplab_")]
    listed = {name for row in rows for name in re.findall(r"`(mplab_\w+)`", row.split("|")[1])}
    assert listed == set(families(folders))
