"""Runs as data frames, their index, and the manual's description of both."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mplab.analysis.errors import NotARunError, QueryError, TablesError
from mplab.analysis.pipeline import analyze
from mplab.analysis.record.schema import SCHEMAS
from mplab.analysis.results.columns import RESULT_TABLES, TRACE_TIME, trace_schema
from mplab.analysis.results.frames import Results
from mplab.analysis.results.index import NAME, TRACES, export, query, update
from mplab.results import load
from tests import notebook
from tests.unit.analysis.synthetic import Synthetic

ROOT = Path(__file__).parents[4]


def build(folder: Path, day: int, *, report: bool = True, **more: Any) -> Path:
    builder = Synthetic(folder, day=day, labels=["10 kB", "1 MB"], repetitions=2, **more)
    run = builder.build()
    if report:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("mplab.analysis.pipeline.draw_all", lambda _: iter(()))
            analyze(run)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two analysed runs, one that was cut off and not analysed, and a folder that is no run."""
    folder = tmp_path_factory.mktemp("runs")
    build(folder, 1)
    build(folder, 2)
    build(folder, 3, report=False, outcome=lambda cell: "missing" if cell["index"] > 4 else "ok")
    (folder / "broken").mkdir()
    (folder / "broken" / "manifest.json").write_text("{")
    return folder


@pytest.fixture
def runs(folder: Path, tmp_path: Path) -> Path:
    """A copy of `folder` for a test that changes it."""
    shutil.copytree(folder, tmp_path / "runs")
    return tmp_path / "runs"


def test_repetitions_inside_a_cell_are_rows_of_values_but_one_value_of_the_cell(tmp_path: Path) -> None:
    run = build(tmp_path, 1)
    path = next(run.glob("cells/*mptcp*r1/scores.json"))
    scores = json.loads(path.read_text())
    row = next(row for row in scores["values"] if row["metric"] == "time")
    row |= {"repeat": 1}
    scores["values"] += [row | {"repeat": number, "value": row["value"] + number} for number in (2, 3)]
    path.write_text(json.dumps(scores))
    results = load(run)
    same = {"cell": path.parent.name, "metric": "time", "labels": row["labels"]["size"]}
    assert results.values.filter(**same).select("repeat", "value").rows() == [
        (number, pytest.approx(row["value"] + (number if number > 1 else 0))) for number in (1, 2, 3)
    ]
    assert results.cell_values.filter(**same)["value"].to_list() == [pytest.approx(row["value"] + 2)]
    assert results.cell_values.height == results.values.height - 2
    assert results.values.filter(pl.col("metric") == "flows")["repeat"].to_list() == [None] * 6


def test_a_folder_of_runs_is_frames(folder: Path) -> None:
    results = load(folder)
    assert results.runs["run_id"].str.slice(0, 8).to_list() == ["20260901", "20260902", "20260903"]
    assert results.runs["analysed"].to_list() == [True, True, False]
    assert results.runs["missing"].to_list() == [0, 0, 2]
    assert len(results.unread) == 1
    assert "broken" in results.unread[0]
    assert results.cells.height == 3 * 6
    own = results.values.filter(pl.col("metric").is_in(("time", "goodput", "flows")))
    assert own.height == 2 * 6 * (2 * 2 + 1), "time and goodput of two sizes, and flows"
    assert set(own.select("labels", "label_value").rows()) == {("10 kB", 1e4), ("1 MB", 1e6), ("", None)}
    assert results.statistics.filter(~pl.col("traced")).height == 2 * 5 * 3
    assert "network_share" in set(results.statistics.filter("traced")["metric"])
    assert results.contrasts.height == 2 * 4 * 2
    assert results.links.height == (6 + 6 + 4) * 5 + (6 + 6 + 4)
    assert results.steps.filter(pl.col("step") == "scenario")["seconds"].unique().to_list() == [4.0]
    for name, table in RESULT_TABLES.items():
        assert dict(results.table(name).schema) == table.schema, name


def test_the_statistics_are_those_of_the_values(folder: Path) -> None:
    results = load(folder)
    keys = ["run_id", "scenario", "link", "transport", "metric", "labels"]
    medians = results.values.group_by(keys).agg(pl.col("value").median().alias("again"))
    both = results.statistics.join(medians, on=keys)
    assert both.height == results.statistics.height
    assert (both["median"] - both["again"]).abs().max() == pytest.approx(0, abs=1e-6)


def test_one_run_is_frames_too(folder: Path) -> None:
    run = next(folder.glob("20260901*"))
    results = load(run)
    assert results.runs["path"].to_list() == [str(run)]
    with pytest.raises(KeyError):
        results.table("nothing")


def test_traces_are_joined_by_cell(folder: Path, tmp_path: Path) -> None:
    results = load(folder)
    connections = results.traces("connections")
    assert dict(connections.schema) == trace_schema("connections")
    assert connections.columns[:2] == ["run_id", "cell"]
    assert connections["cell"].n_unique() == 6
    assert connections["run_id"].n_unique() == 3
    assert connections.height == 3 * (6 + 6 + 4)
    none = tmp_path / "none"
    build(none, 1, report=False, outcome=lambda _: "failed")
    assert load(none).traces("points").is_empty()


def test_times_of_traces_are_timestamps(folder: Path) -> None:
    cell = next(next(folder.glob("20260901*")).glob("cells/*"))
    written = pl.read_parquet(cell / "tables" / "connections.parquet")
    own = load(folder).traces("connections").filter(run_id=cell.parents[1].name, cell=cell.name)
    assert own.schema["start_time"] == TRACE_TIME
    assert own["start_time"].dt.timestamp("ns").to_list() == written["start_ns"].to_list()
    assert "time" in trace_schema("rtt")
    assert not [name for table in SCHEMAS for name in trace_schema(table) if name.endswith("_ns")]


def test_times_are_in_utc_in_parquet_only(runs: Path, tmp_path: Path) -> None:
    update(runs, runs / NAME)
    results = load(runs)
    for name, column in (("runs", "started"), ("connections", "start_time")):
        out = tmp_path / f"{name}.parquet"
        for _ in range(2):  # an existing file is replaced
            export(runs / NAME, f"SELECT {column} FROM {name} ORDER BY ALL", out, "parquet")  # noqa: S608 - ours
        frame = results.runs if name == "runs" else results.traces(name)
        assert pl.read_parquet(out)[column].equals(frame[column].sort())
    export(runs / NAME, "SELECT started FROM runs ORDER BY ALL", tmp_path / "runs.csv", "csv")
    assert (tmp_path / "runs.csv").read_text().splitlines()[1] == "2026-09-01 10:15:00"


def test_traces_of_an_older_mptrace_are_upgraded(runs: Path) -> None:
    run = next(runs.glob("20260901*"))
    tables = sorted(run.glob("cells/*/tables"))[0]
    shutil.rmtree(tables)
    tables.mkdir()
    old = {"connection_id": 4, "kind": "mptcp", "interfaces": "wlan0,rmnet0", "bytes_down": 70}
    pl.DataFrame([old]).write_parquet(tables / "connections.parquet")
    counts = [f"{name}_{direction}" for name in ("segments", "payload", "unique") for direction in ("up", "down")]
    counts += [f"retransmitted_{name}_{direction}" for name in ("segments", "bytes") for direction in ("up", "down")]
    flow = {"connection_id": 4, "subflow_id": 0, "interface": "rmnet0", **dict.fromkeys(counts, 1)}
    pl.DataFrame([flow]).write_parquet(tables / "subflows.parquet")
    own = load(runs).traces("connections").filter(cell=tables.parent.name, run_id=run.name)
    assert own["networks"].to_list() == ["wifi,cellular"]
    update(runs, runs / NAME)
    sql = f"SELECT networks FROM connections WHERE cell = '{tables.parent.name}' AND run_id = '{run.name}'"  # noqa: S608
    assert query(runs / NAME, sql).rows == (("wifi,cellular",),)


def test_where_there_is_no_run_that_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(NotARunError, match=r"no manifest\.json in it"):
            load(path)


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("report/summary.json", "{", "summary.json: cannot be read"),
        ("report/summary.json", '{"format": 99, "metrics": []}', "format 99; this mplab reads up to 1"),
    ],
)
def test_a_damaged_report_is_named(runs: Path, file: str, content: str, words: str) -> None:
    run = next(runs.glob("20260902*"))
    (run / file).write_text(content)
    with pytest.raises(TablesError, match=words):
        _ = load(run).statistics
    result = update(runs, runs / NAME)
    assert (result.read, len(result.problems)) == (2, 2)


def test_a_report_of_before_contrasts_has_none(runs: Path) -> None:
    run = next(runs.glob("20260902*"))
    path = run / "report" / "summary.json"
    content = json.loads(path.read_text())
    for group in content["metrics"]:
        del group["contrasts"]
    path.write_text(json.dumps(content))
    results = load(run)
    assert results.contrasts.is_empty()
    assert results.statistics.filter(~pl.col("traced")).height == 15


def test_the_index_has_what_the_frames_have(runs: Path) -> None:
    result = update(runs, runs / NAME)
    assert (result.read, result.kept, result.removed) == (3, 0, 0)
    assert len(result.problems) == 1
    results = load(runs)
    for name in (*RESULT_TABLES, *TRACES):
        frame = results.table(name) if name in RESULT_TABLES else results.traces(name)
        answer = query(runs / NAME, f'SELECT * FROM "{name}"')  # noqa: S608 - names of our tables
        assert list(answer.columns) == frame.columns
        assert len(answer.rows) == frame.height
    (best,) = query(
        runs / NAME,
        "SELECT transport FROM values WHERE metric = 'time' GROUP BY transport ORDER BY median(value) LIMIT 1",
    ).rows
    assert best == ("mptcp",)


def test_only_what_changed_is_read_again(runs: Path) -> None:
    index = runs / NAME
    update(runs, index)
    assert update(runs, index).read == 0
    shutil.rmtree(next(runs.glob("20260901*")))
    changed = next(runs.glob("20260902*"))
    summary = changed / "report" / "summary.json"
    content = json.loads(summary.read_text())
    content["metrics"] = content["metrics"][:1]
    summary.write_text(json.dumps(content))
    build(runs, 4)
    result = update(runs, index)
    assert (result.read, result.kept, result.removed) == (2, 1, 1)
    counted = "SELECT run_id[:8], count(*) FROM statistics WHERE NOT traced GROUP BY run_id ORDER BY run_id"
    rows = query(index, counted).rows
    assert rows == (("20260902", 3), ("20260904", 15))


def test_the_index_can_always_be_made_again(runs: Path) -> None:
    index = runs / NAME
    update(runs, index)
    index.write_bytes(b"nonsense" * 1000)
    assert update(runs, index).read == 3
    assert update(runs, index, rebuild=True).read == 3
    index.unlink()
    assert update(runs, index).read == 3


def test_a_copied_run_counts_once(runs: Path) -> None:
    run = next(runs.glob("20260901*"))
    shutil.copytree(run, runs / "copy")
    result = update(runs, runs / NAME)
    assert result.read == 3
    assert any("another folder has the same run" in problem for problem in result.problems)
    assert query(runs / NAME, "SELECT count(*) FROM runs").rows == ((3,),)
    results = load(runs)
    assert results.runs.height == 3
    assert any(f"is the same run {run.name}" in problem for problem in results.unread)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT * FROM vals", "tables: cells, connections, contrasts"),
        ("SELEC 1", "syntax error"),
        ("SELECT nothing FROM runs", "nothing"),
        ("DELETE FROM runs", "one SELECT is needed: found DELETE"),
    ],
)
def test_wrong_statements_are_explained(runs: Path, sql: str, words: str) -> None:
    update(runs, runs / NAME)
    with pytest.raises(QueryError, match=words):
        query(runs / NAME, sql)
    assert query(runs / NAME, "SELECT count(*) FROM runs").rows == ((3,),)


def test_without_an_index_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="`mplab results index` makes it"):
        query(tmp_path / NAME, "SELECT 1")
    with pytest.raises(NotARunError):
        update(tmp_path / "nothing", tmp_path / NAME)


def test_exports_hold_the_same_rows(runs: Path, tmp_path: Path) -> None:
    update(runs, runs / NAME)
    sql = "SELECT run_id, cell, metric, value FROM values ORDER BY ALL;"
    for form in ("csv", "parquet", "json"):
        export(runs / NAME, sql, tmp_path / f"it's.{form}", form)
    frames = [
        pl.read_csv(tmp_path / "it's.csv"),
        pl.read_parquet(tmp_path / "it's.parquet"),
        pl.read_json(tmp_path / "it's.json"),
    ]
    assert frames[0].height == load(runs).values.height
    for frame in frames[1:]:
        assert frame.equals(frames[0].with_columns(pl.col("value").cast(frame.schema["value"])))


def test_the_notebook_runs_and_stores_such_outputs(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On other runs, the cells have outputs of the same kinds, with the same columns, as those stored."""
    content = notebook.read(ROOT / "docs" / "examples" / "results.ipynb")
    assert content["nbformat"] == 4
    stored = [cell["outputs"] for cell in content["cells"] if cell["cell_type"] == "code"]
    monkeypatch.chdir(runs.parent)
    with pl.Config():  # restores polars' options, which the notebook sets
        made = notebook.outputs([source.replace('"download_time"', '"time"') for source in notebook.code(content)])
    assert len(made) > 5
    assert [list(map(shown, cell)) for cell in stored] == [list(map(shown, cell)) for cell in made]


def shown(output: notebook.Output) -> tuple[str, list[str], list[str]]:
    """Return the kind of an output, its types of data, and the columns of a frame."""
    data = output.get("data", {})
    return output["output_type"], list(data), re.findall("<th>(.*?)</th>", "".join(data.get("text/html", ())))


def test_an_empty_selection_has_all_columns() -> None:
    nothing = Results(())
    for name, table in RESULT_TABLES.items():
        assert dict(nothing.table(name).schema) == table.schema


def test_a_damaged_index_is_made_again_in_any_folder(tmp_path: Path) -> None:
    folder = tmp_path / "blocks"  # DuckDB names the file in its message, which is not about a lock
    folder.mkdir()
    (folder / NAME).write_bytes(b"no database" * 1000)
    assert not update(folder, folder / NAME).problems
    assert query(folder / NAME, "SELECT count(*) FROM runs").rows == ((0,),)
