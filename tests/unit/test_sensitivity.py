"""Sensitivity of the metrics: the claims in each scenario's folder, and the experiment of all claims."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.analysis.scores.plugins import load
from mplab.base.errors import InputError
from mplab.cli.main import app
from mplab.lab.catalog import catalog, scenario_names
from mplab.lab.sensitivity import sensitivity_experiment, sensitivity_of
from mplab.userfiles.experiments.resolve import load_experiment
from tests.foreign import Foreign, installed


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    with installed(tmp_path / "foreign") as plugins:
        yield plugins


@pytest.mark.parametrize("name", scenario_names())
def test_each_headline_metric_is_claimed_to_respond(name: str) -> None:
    sensitivity = sensitivity_of(name)
    assert sensitivity is not None
    headlines = {metric.name for metric in load(name).metrics if metric.headline and metric.better != "neither"}
    assert headlines <= sensitivity.claims.keys() | sensitivity.unclaimed.keys()
    assert not sensitivity.claims.keys() & sensitivity.unclaimed.keys()


def test_the_claims_of_all_scenarios_are_one_experiment(tmp_path: Path) -> None:
    file = tmp_path / "sensitivity.yaml"
    file.write_text(CliRunner().invoke(app, ["scenarios", "sensitivity"]).stdout)
    experiment = load_experiment(file, catalog=catalog())
    assert [use.name for use in experiment.scenarios] == scenario_names()
    for claim in experiment.claims:
        (name,) = claim.scenarios
        assert claim.metric in {metric.name for metric in load(name).metrics}
    assert {claim.scenarios for claim in experiment.claims} == {(name,) for name in scenario_names()}


def test_sensitivity_of_some_scenarios(tmp_path: Path) -> None:
    file = tmp_path / "sensitivity.yaml"
    file.write_text(CliRunner().invoke(app, ["scenarios", "sensitivity", "iperf"]).stdout)
    assert [use.name for use in load_experiment(file, catalog=catalog()).scenarios] == ["iperf"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("claims: {goodput: It is faster}\nparameter: {}\n", "sensitivity.yaml:2: unknown key 'parameter'"),
        ("parameters: {}\n", "sensitivity.yaml:1: key 'claims' is missing"),
        ("claims: {}\n", "sensitivity.yaml:1: claims: empty: at least 1 needed"),
    ],
)
def test_a_wrong_file_is_refused(foreign: Foreign, text: str, message: str) -> None:
    (foreign.scenario("toy", "METRICS = ()\n") / "sensitivity.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        sensitivity_of("toy")
    assert message in str(caught.value)


def test_a_scenario_without_the_file_is_left_out(foreign: Foreign) -> None:
    foreign.scenario("toy", "METRICS = ()\n")
    assert sensitivity_of("toy") is None
    assert sensitivity_experiment(["iperf", "toy"]) == sensitivity_experiment(["iperf"])
