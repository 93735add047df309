"""The commands and SQL queries of the manual that read runs work on two small runs."""

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.analysis.pipeline import analyze
from mplab.analysis.results.index import NAME, query, update
from mplab.cli.main import app
from tests.manual import BLOCKS
from tests.unit.analysis.synthetic import Synthetic, toy_scenario
from tests.unit.docs.test_commands import ALL

QUERIES = [
    (block.name, sql)
    for block in BLOCKS
    if block.language in {"", "sh"}
    for sql in re.findall(r'^ *mplab results query "([^"…]+)"', block.text, re.MULTILINE)
]
_READING = frozenset({"report", "show", "compare", "trend", "bundle", "status", "results"})
"""Verbs that read runs and write only to the requested output."""
_ELSEWHERE = frozenset({"--open", "--pdf", "--watch", "query"})
"""Options that need a browser or do not end; queries have their own test."""
READING = list(
    dict.fromkeys(tuple(words) for _, words in ALL if words and words[0] in _READING and not _ELSEWHERE & set(words))
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make a folder with analysed runs of an experiment, and their index."""
    runs: Path = tmp_path_factory.mktemp("made") / "runs"
    with toy_scenario(tmp_path_factory.mktemp("toy")):
        for day in range(1, 5):
            run = Synthetic(runs, day=day, name="short-files", labels=["10 kB", "1 MB"], repetitions=3).build()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
                analyze(run)
        update(runs, runs / NAME)
        yield runs


@pytest.mark.parametrize(("name", "sql"), QUERIES, ids=[name for name, _ in QUERIES])
def test_a_query_of_the_manual_has_an_answer(name: str, sql: str, made: Path) -> None:
    """The metric of the small runs is called `time`."""
    assert query(made / NAME, sql.replace("'download_time'", "'time'")).rows, name


def test_the_queries_are_found() -> None:
    assert len(QUERIES) == 5


def test_the_medians_of_the_manual_are_those_of_the_report(made: Path) -> None:
    """A query that pools sizes, links or runs has other medians."""
    keys = "run_id, scenario, link, labels, transport"
    order = "ORDER BY run_id, scenario, link, label_value, transport"
    reported = f"SELECT {keys}, n, round(median, 3) FROM statistics WHERE metric = 'time' {order}"  # noqa: S608
    computed = [sql for _, sql in QUERIES if "median(value)" in sql]
    assert computed
    for sql in computed:
        assert query(made / NAME, sql.replace("'download_time'", "'time'")).rows == query(made / NAME, reported).rows


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_a_command_that_reads_runs_works_as_printed(
    words: Sequence[str], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    runs = sorted(path.name for path in made.iterdir() if path.is_dir())
    meant = {"RUN": runs[-1], "B": runs[-1], "CELL": "1", "SELECT …": "SELECT 1"}
    meant |= dict(zip(("A1", "A2", "A3"), runs[:-1], strict=True), A=runs[0])
    result = CliRunner().invoke(app, [meant.get(word, word) for word in words])
    assert result.exit_code == 0, f"{result.exception} {result.output}"
