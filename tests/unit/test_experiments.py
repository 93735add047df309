"""mplab's own experiments: each can be planned, gives the source of its claims, and is listed."""

import re
from pathlib import Path

import pytest

from mplab.lab.catalog import catalog
from mplab.run.hostside.metrics import check_metrics
from mplab.userfiles.experiments.resolve import load_experiment

DIRECTORY = Path(__file__).parents[2] / "experiments"
EXPERIMENTS = sorted(DIRECTORY.glob("*.yaml"))


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_it_can_be_run(path: Path) -> None:
    experiment = load_experiment(path, catalog=catalog())
    assert experiment.name == path.stem
    check_metrics(experiment)


@pytest.mark.parametrize("path", EXPERIMENTS, ids=lambda path: path.stem)
def test_each_claim_names_its_figure_and_the_source_of_its_width(path: Path) -> None:
    for claim in load_experiment(path, catalog=catalog()).claims:
        assert claim.figure or claim.source == "ours", claim.text
        assert claim.claimed is not None, claim.text
        assert bool(claim.width) is (claim.claimed.word is None), f"{claim.text}: a range has a source, a word has none"
        if claim.width == "paper" and claim.claimed.word is None:
            assert claim.source, claim.text


def test_each_is_listed() -> None:
    listed = re.findall(r"^\| \[`([\w-]+)`\]\(\1\.yaml\)", (DIRECTORY / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.stem for path in EXPERIMENTS)


def test_apps_has_no_scenario_twice() -> None:
    experiment = load_experiment(DIRECTORY / "apps.yaml", catalog=catalog())
    names = [use.name for use in experiment.scenarios]
    assert sorted(set(names)) == sorted(names)
