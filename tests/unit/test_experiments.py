"""mplab's own experiments: each can be planned, gives the source of its claims, and is listed."""

import re
from pathlib import Path

import pytest

from mplab.analysis.scores.plugins import load
from mplab.lab.catalog import catalog
from mplab.userfiles.experiments.resolve import load_experiment

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


def test_apps_has_no_scenario_twice() -> None:
    experiment = load_experiment(DIRECTORY / "apps.yaml", catalog=catalog())
    names = [use.name for use in experiment.scenarios]
    assert sorted(set(names)) == sorted(names)
