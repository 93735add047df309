"""``mplab results``."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner, Result

from mplab.analysis.errors import QueryError
from mplab.base.errors import InputError
from mplab.cli.main import app
from tests.unit.analysis.synthetic import Synthetic


def results(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["results", *arguments])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two runs without analysis, whose cells are still known."""
    folder = tmp_path_factory.mktemp("runs")
    for day in (1, 2):
        Synthetic(folder, day=day, repetitions=1).build()
    return str(folder)


def test_the_index_says_what_it_read(runs: str, tmp_path: Path) -> None:
    index = str(tmp_path / "own.duckdb")
    first = json.loads(results("index", "--runs", runs, "--index", index, "--json").stdout)
    assert (first["index"], first["read"], first["problems"]) == (index, 2, [])
    assert "0 runs read, 2 unchanged" in results("index", "--runs", runs, "--index", index).stdout
    assert "2 runs read" in results("index", "--runs", runs, "--index", index, "--rebuild").stdout


def test_a_query_answers_for_people_and_programs(runs: str) -> None:
    sql = "SELECT run_id[:8] AS night, count(*) AS cells, avg(duration_s) AS mean FROM cells GROUP BY 1 ORDER BY 1"
    assert json.loads(results("query", sql, "--runs", runs, "--json").stdout) == [
        {"night": "20260901", "cells": 3, "mean": 4.5},
        {"night": "20260902", "cells": 3, "mean": 4.5},
    ]
    assert "20260902  3      4.5" in results("query", sql, "--runs", runs).stdout
    wrong = results("query", "SELECT * FROM vals", "--runs", runs)
    assert isinstance(wrong.exception, QueryError)
    assert wrong.exception.exit_code == 2


def test_without_an_update_the_index_is_asked_as_it_is(runs: str, tmp_path: Path) -> None:
    missing = results("query", "SELECT 1", "--runs", runs, "--index", str(tmp_path / "x.duckdb"), "--no-update")
    assert isinstance(missing.exception, QueryError)


def test_exports(runs: str, tmp_path: Path) -> None:
    assert results("export", "runs", "--runs", runs).stdout.startswith("run_id,path,experiment,title,started")
    rows = json.loads(results("export", "--query", "SELECT cell FROM cells", "--format", "json", "--runs", runs).stdout)
    assert len(rows) == 6
    file = tmp_path / "cells.parquet"
    assert results("export", "cells", "--format", "parquet", "-o", str(file), "--runs", runs).exit_code == 0
    assert pl.read_parquet(file).height == 6


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "or --query is needed, and only one of them"),
        (["runs", "--query", "SELECT 1"], "or --query is needed, and only one of them"),
        (["runs", "--format", "parquet"], "Parquet needs a file"),
    ],
)
def test_what_cannot_be_exported_is_said(runs: str, arguments: list[str], words: str) -> None:
    result = results("export", *arguments, "--runs", runs)
    assert isinstance(result.exception, InputError)
    assert words in str(result.exception)


def test_the_tables_are_listed() -> None:
    listed = {table["table"]: table["columns"] for table in json.loads(results("tables", "--json").stdout)}
    assert {"runs", "cells", "values", "statistics", "contrasts", "links", "steps", "connections"} <= set(listed)
    assert listed["connections"][:2] == ["run_id", "cell"]
    assert "contrasts" in results("tables").stdout


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT content FROM read_text('{secret}')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/written'",
        "EXPORT DATABASE '{folder}/written'",
        "ATTACH '{folder}/written'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "",
        "SELECT * FROM results",
    ],
)
def test_a_query_reads_the_index_only_and_writes_nothing(runs: str, tmp_path: Path, sql: str) -> None:
    (tmp_path / "secret.csv").write_text("word\nsesame\n")
    statement = sql.format(secret=tmp_path / "secret.csv", folder=tmp_path)
    for arguments in (["query", statement], ["export", "--query", statement or ";", "-o", str(tmp_path / "out.csv")]):
        answer = results(*arguments, "--runs", runs)
        assert isinstance(answer.exception, QueryError)
        assert "sesame" not in answer.output
        assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


def test_an_export_writes_its_own_file_only(runs: str, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    out = tmp_path / "it's.csv"
    sql = f"SELECT 1) TO '{other}' (FORMAT csv); --"
    assert isinstance(
        results("export", "--query", sql, "-o", str(out), "--runs", runs, "--no-update").exception, QueryError
    )
    assert results("export", "--query", "SELECT 1 AS x -- one", "-o", str(out), "--runs", runs).exit_code == 0
    assert out.read_text() == "x\n1\n"
    assert not other.exists()


def test_texts_of_a_csv_are_no_formulas(runs: str) -> None:
    sql = """SELECT '=1+1' AS "a ""b", '-x' AS c, 'x' AS d, -1 AS e, '@x' AS f"""
    exported = results("export", "--query", sql, "--runs", runs, "--no-update").stdout
    assert exported == '"a ""b",c,d,e,f\n\'=1+1,\'-x,x,-1,\'@x\n'


def test_a_time_with_a_zone_is_explained(runs: str) -> None:
    answer = results("query", "SELECT now() AS t", "--runs", runs, "--no-update")
    assert isinstance(answer.exception, QueryError)
    assert str(answer.exception) == "a column is a TIMESTAMP WITH TIME ZONE: cast it: COLUMN::TIMESTAMP"


INTERRUPTED = """
import os, sys, threading
from mplab.analysis.results import index
from mplab.cli.main import main

ask, number = index._interruptible, int(sys.argv[1])

def begin(connection, work):
    threading.Timer(0.5, os.kill, (os.getpid(), number)).start()
    return ask(connection, work)

index._interruptible = begin
sys.argv = ["mplab", "results", "query", "--runs", *sys.argv[2:]]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_command(runs: str, number: signal.Signals) -> None:
    endless = "SELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE a.range % 7 = b.range % 11"
    result = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(int(number)), runs, endless],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        # A background job of a shell, such as these tests, may ignore SIGINT; so would the command.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert result.returncode == 130, result.stderr
