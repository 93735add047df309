"""The experiments of the product: each can be planned, tells where its claims come from, and is listed."""

import re
from pathlib import Path

import pytest

from mplab.analysis.scores.plugins import load
from mplab.lab.catalog import catalog, scenario_names
from mplab.userfiles.resolve import load_experiment

DIRECTORY = Path(__file__).parents[2] / "experiments"
EXPERIMENTS = sorted(DIRECTORY.glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_it_can_be_run(path: Path) -> None:
    experiment = load_experiment(path, catalog=catalog())
    assert experiment.name == path.stem
    for claim in experiment.claims:
        scenarios = [use for use in experiment.scenarios if not claim.scenarios or use.label in claim.scenarios]
        measured = {metric.name for use in scenarios for metric in load(use.name).metrics}
        assert claim.metric in measured


def test_each_is_listed() -> None:
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(\1\.yaml\)", (DIRECTORY / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == [path.stem for path in EXPERIMENTS]


@pytest.mark.parametrize("name", ["apps", "sensitivity"])
def test_all_scenarios_are_in_it(name: str) -> None:
    experiment = load_experiment(DIRECTORY / f"{name}.yaml", catalog=catalog())
    assert sorted(use.name for use in experiment.scenarios) == sorted(scenario_names())


def test_each_headline_metric_is_claimed_to_respond() -> None:
    experiment = load_experiment(DIRECTORY / "sensitivity.yaml", catalog=catalog())
    headlines = {
        (name, metric.name)
        for name in scenario_names()
        for metric in load(name).metrics
        if metric.headline and metric.better != "neither"
    }
    claimed = {(name, claim.metric) for claim in experiment.claims for name in claim.scenarios}
    assert headlines - claimed == {("udp-jitter", "reordered")}  # needs two paths
