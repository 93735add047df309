"""Scores of registered scenarios, and the consequences of errors in them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mplab.analysis.errors import ScenarioMissingError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.run import read_run
from mplab.analysis.scores.plugins import load
from mplab.analysis.scores.scoring import read_scores, score_cell
from mplab.base.plugins import SCENARIOS
from tests.foreign import Foreign
from tests.unit.analysis.synthetic import TOY_SCORES, Synthetic, summary_json

HEAD = (
    "from mplab.analysis.metric import Metric, Value\n"
    'METRICS = (Metric("m", "M", "s", "lower", ("k",), limits=(0, 60)),)\n'
)


def test_loads_a_package_with_relative_imports(foreign: Foreign, tmp_path: Path) -> None:
    body = HEAD + "from .inner import three\ndef score(o, t, folder):\n    return [Value('m', three(), {'k': 'x'})]\n"
    foreign.scenario("relative", body, inner="def three():\n    return 3.0\n")
    plugin = load("relative")
    assert plugin.metrics[0].name == "m"
    assert plugin.score([], {}, tmp_path)[0].value == 3.0


def test_scores_are_given_the_cells_folder(foreign: Foreign, tmp_path: Path) -> None:
    body = HEAD + "def score(o, t, folder):\n    return [Value('m', float((folder / 'f').read_text()), {'k': 'x'})]\n"
    foreign.scenario("files", body)
    (tmp_path / "f").write_text("4.5")
    assert load("files").score([], {}, tmp_path)[0].value == 4.5


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("METRICS = 3\ndef score(o, t, folder):\n    return []\n", "METRICS is not a tuple"),
        ("METRICS = ()\nscore = 3", "it has no function score"),
        ("METRICS = ()", "has no score"),
        ("def score(o, t, folder):\n    return []\n", "has no METRICS"),
        ("import no_such_module", "cannot be imported: ModuleNotFoundError"),
        ("def score(", "cannot be imported: SyntaxError"),
    ],
)
def test_a_bad_plugin_is_explained(foreign: Foreign, body: str, problem: str) -> None:
    foreign.scenario("bad", body)
    with pytest.raises(ScenarioMissingError, match=rf"scenario bad: bad_\d+\.bad\.scores \(of bad 1\.0\).*{problem}"):
        load("bad")


def test_a_missing_plugin_says_what_there_is() -> None:
    known = ", ".join(SCENARIOS)
    assert {"call", "toy", "web"} <= set(SCENARIOS)
    with pytest.raises(ScenarioMissingError, match=rf"scenario 'nope': not registered. Registered: {known}"):
        load("nope")


@pytest.mark.parametrize(
    "name", ["../evil", "toy/../../evil", ".", "..", "", "toy/inner", "toy.inner", "evil", "os", "/absolute"]
)
def test_a_name_is_looked_up_and_never_used_as_a_path_or_module(foreign: Foreign, tmp_path: Path, name: str) -> None:
    mark = tmp_path / "executed"
    body = f"open({str(mark)!r}, 'w').close()\n" + HEAD + "def score(o, t, folder):\n    return []\n"
    toy = foreign.scenario("toy", TOY_SCORES)
    for folder in (toy / "inner", foreign.folder / "evil"):
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(body)
        (folder / "scores.py").write_text(body)
    name = str(foreign.folder / "evil") if name == "/absolute" else name
    with pytest.raises(ScenarioMissingError, match="Registered: call, "):
        load(name)
    assert not mark.exists()


def test_scores_are_written_sorted_and_rounded(synthetic: Callable[..., Synthetic]) -> None:
    builder = synthetic(repetitions=1)
    cell = read_run(builder.build()).cells[0]
    scores = score_cell(cell, load("toy"))
    assert scores.problem is None
    assert cell.directory is not None
    path = cell.directory / "scores.json"
    assert tuple(read_scores(path)) == scores.values
    names = [value.metric for value in scores.values]
    assert names == sorted(names)
    assert len(names) == 7
    before = path.read_bytes()
    score_cell(cell, load("toy"))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("[Value('x', 1.0)]", "METRICS has no metric x"),
        ("[Value('m', 1.0)]", "has the labels []; METRICS declares ['k']"),
        ("[Value('m', float('nan'), {'k': 'x'})]", "a value of m is nan"),
        ("[Value('m', -1.0, {'k': 'x'})]", "a value of m is -1 s. Allowed: 0 … 60"),
        ("[Value('m', 61.0, {'k': 'x'})]", "a value of m is 61 s. Allowed: 0 … 60"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_a_plugins_mistake_is_a_problem_in_the_report(
    synthetic: Callable[..., Synthetic], foreign: Foreign, result: str, problem: str
) -> None:
    builder = synthetic(repetitions=1)
    run = builder.build()
    foreign.scenario("toy", f"{HEAD}def score(o, t, folder):\n    return {result}\n")
    analyze(run)
    problems = summary_json(run)["problems"]
    assert len(problems) == 3
    assert problem in problems[0]["message"]
    assert "Problems of the analysis" in (run / "report" / "index.html").read_text()
