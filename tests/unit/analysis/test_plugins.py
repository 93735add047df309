"""Scenario folders as plug-ins, and what their mistakes lead to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.analysis.errors import ScenarioMissingError
from mplab.analysis.pipeline import analyze, summary_json
from mplab.analysis.plugins import load
from mplab.analysis.run import read_run
from mplab.analysis.scores import read_scores, score_cell
from tests.unit.analysis.synthetic import TOY_SCORES, Synthetic, write_scenario

HEAD = (
    "from mplab.analysis.metric import Metric, Value\n"
    'METRICS = (Metric("m", "M", "s", "lower", ("k",), limits=(0, 60)),)\n'
)


def test_loads_a_folder_with_relative_imports(tmp_path: Path) -> None:
    body = HEAD + "from .inner import three\ndef score(o, t):\n    return [Value('m', three(), {'k': 'x'})]\n"
    write_scenario(tmp_path, "relative", body)
    (tmp_path / "relative" / "inner.py").write_text("def three():\n    return 3.0\n")
    plugin = load("relative", [tmp_path])
    assert plugin.metrics[0].name == "m"
    assert plugin.score([], {}, tmp_path)[0].value == 3.0


def test_scores_that_ask_for_it_are_given_the_cells_folder(tmp_path: Path) -> None:
    body = HEAD + "def score(o, t, folder):\n    return [Value('m', float((folder / 'f').read_text()), {'k': 'x'})]\n"
    write_scenario(tmp_path, "files", body)
    (tmp_path / "f").write_text("4.5")
    assert load("files", [tmp_path]).score([], {}, tmp_path)[0].value == 4.5


def test_a_folder_of_the_same_name_elsewhere_is_another_plugin(tmp_path: Path) -> None:
    for place, unit in (("one", "s"), ("two", "ms")):
        body = HEAD.replace('"s"', f'"{unit}"') + "def score(o, t):\n    return []\n"
        write_scenario(tmp_path / place, "twin", body)
    assert load("twin", [tmp_path / "one"]).metrics[0].unit == "s"
    assert load("twin", [tmp_path / "two"]).metrics[0].unit == "ms"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("METRICS = 3", "METRICS is not a tuple"),
        ("from mplab.analysis.metric import Metric\nMETRICS = ()", "there is no function score"),
        ("import no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("def score(", "cannot be imported: SyntaxError"),
    ],
)
def test_a_bad_plugin_is_explained(tmp_path: Path, body: str, problem: str) -> None:
    write_scenario(tmp_path, "bad", body)
    with pytest.raises(ScenarioMissingError, match=problem):
        load("bad", [tmp_path])


def test_a_missing_plugin_says_where_it_looked_and_what_there_is(tmp_path: Path) -> None:
    write_scenario(tmp_path, "toy", TOY_SCORES)
    with pytest.raises(ScenarioMissingError, match=r"scenario 'nope': no folder .* in .*; there is: toy"):
        load("nope", [tmp_path])


@pytest.mark.parametrize("name", ["../evil", "toy/../../evil", ".", "..", "", "toy/inner", "/absolute"])
def test_a_name_is_looked_up_and_never_used_as_a_path(tmp_path: Path, name: str) -> None:
    mark = tmp_path / "executed"
    body = f"open({str(mark)!r}, 'w').close()\n" + HEAD + "def score(o, t):\n    return []\n"
    write_scenario(tmp_path / "scenarios", "toy", TOY_SCORES)
    write_scenario(tmp_path / "scenarios" / "toy", "inner", body)
    write_scenario(tmp_path, "evil", body)
    write_scenario(tmp_path, "scenarios", body)
    name = str(tmp_path / "evil") if name == "/absolute" else name
    with pytest.raises(ScenarioMissingError, match="there is: toy"):
        load(name, [tmp_path / "scenarios"])
    assert not mark.exists()


def test_scores_are_written_sorted_and_rounded(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1)
    cell = read_run(builder.build()).cells[0]
    scores = score_cell(cell, load("toy", builder.scenario_folders))
    assert scores.problem is None
    assert cell.directory is not None
    path = cell.directory / "scores.json"
    assert tuple(read_scores(path)) == scores.values
    names = [value.metric for value in scores.values]
    assert names == sorted(names)
    assert len(names) == 7
    before = path.read_bytes()
    score_cell(cell, load("toy", builder.scenario_folders))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("[Value('x', 1.0)]", "the value of x belongs to no metric"),
        ("[Value('m', 1.0)]", "has the labels [], METRICS says ['k']"),
        ("[Value('m', float('nan'), {'k': 'x'})]", "a value of m is nan"),
        ("[Value('m', -1.0, {'k': 'x'})]", "a value of m is -1 s: possible are 0 … 60"),
        ("[Value('m', 61.0, {'k': 'x'})]", "a value of m is 61 s: possible are 0 … 60"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_a_plugins_mistake_is_a_problem_in_the_report(
    synthetic: Callable[..., Synthetic], result: str, problem: str
) -> None:
    builder = synthetic(repetitions=1)
    run = builder.build()
    write_scenario(builder.scenario_folders[0], "toy", f"{HEAD}def score(o, t):\n    return {result}\n")
    analyze(run, scenario_folders=builder.scenario_folders)
    problems = summary_json(run)["problems"]
    assert len(problems) == 3
    assert problem in problems[0]["message"]
    assert "Problems of the analysis" in (run / "report" / "index.html").read_text()
