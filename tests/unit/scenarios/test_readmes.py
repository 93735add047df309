"""The READMEs of the scenarios describe the scenarios correctly."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from mplab.analysis.scores.plugins import load
from mplab.base.plugins import SCENARIOS
from mplab.lab.catalog import catalog, scenario_names
from mplab.userfiles.experiments.resolve import load_experiment

_FENCED = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
_EXPERIMENT = "mplab: 1\nname: manual\ntransports: [sptcp-wifi]\nlinks: [baseline]\n"

each_scenario = pytest.mark.parametrize("name", scenario_names())


def readme(name: str) -> str:
    return (SCENARIOS[name].folder() / "README.md").read_text()


def quoted(text: str) -> set[str]:
    """Return all words ``like this`` outside of examples."""
    return set(re.findall(r"`([^`\n]+)`", _FENCED.sub("", text)))


def rows(text: str, first: str) -> Iterator[list[str]]:
    """Yield the rows of all tables whose first column is called `first`, as cells."""
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith(f"| {first} |"):
            for row in takewhile(lambda line: line.startswith("|"), lines):
                cells = [cell.strip() for cell in row.strip("|").split("|")]
                if not set("".join(cells)) <= set("- "):
                    yield cells


@each_scenario
def test_it_begins_with_the_name_and_what_the_scenario_does(name: str) -> None:
    title, empty, first, *_ = readme(name).splitlines()
    assert (title, empty) == (f"# {name}", "")
    assert re.match("[A-Z]", first)


@each_scenario
def test_every_headline_metric_is_named_and_the_reference_is_linked(name: str) -> None:
    headlines = {metric.name for metric in load(name).metrics if metric.headline}
    assert headlines, "a scenario without a headline metric"
    assert headlines <= quoted(readme(name))
    assert f"docs/reference/scenarios.md#{name})" in readme(name)


@each_scenario
def test_what_the_tables_name_is_there(name: str) -> None:
    units = {metric.name: metric.unit for metric in load(name).metrics}
    for names, unit, *_ in rows(readme(name), "metric"):
        metric_units = {units[metric] for metric in quoted(names)}
        assert metric_units == {unit} or set(unit.split(", ")) == metric_units or "" in metric_units, names


@each_scenario
def test_the_examples_are_valid(name: str, tmp_path: Path) -> None:
    examples = _FENCED.findall(readme(name))
    assert examples
    for example in examples:
        file = tmp_path / "manual.yaml"
        file.write_text(_EXPERIMENT + example)
        assert name in {use.name for use in load_experiment(file, catalog=catalog()).scenarios}
