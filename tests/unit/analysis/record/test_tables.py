"""Reading tables: on demand, sorted, empty with their columns, upgraded from the first schema."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from mplab.analysis.errors import TablesError
from mplab.analysis.record.run import read_run
from mplab.analysis.record.schema import SCHEMA_FILE, SCHEMAS, VERSION_KEY, parse_schema
from mplab.analysis.record.tables import Tables, read_tables
from tests.unit.analysis.synthetic import Synthetic
from tests.unit.analysis.traces import Trace, frame


def test_the_schema_names_every_table_and_type() -> None:
    version, tables = parse_schema(SCHEMA_FILE.read_text(encoding="utf-8"))
    assert version == 2
    assert {"connections", "subflows", "directions", "rtt", "points", "objects"} <= set(tables)
    assert tables["subflows"].schema["payload_up"] is pl.Int64
    join_delay = next(c for c in tables["connections"].columns if c.name == "join_delay_ms")
    assert (join_delay.unit, join_delay.nullable) == ("ms", True)


@pytest.mark.parametrize("text", ["{}", '{"schema": 2, "tables": {"a": {"columns": [{"name": "x", "type": "blob"}]}}}'])
def test_a_schema_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a schema"):
        parse_schema(text)


def test_reads_all_tables(tmp_path: Path) -> None:
    Trace().write(tmp_path)
    tables = Tables(tmp_path)
    assert set(tables) == set(SCHEMAS)
    assert {name: dict(tables[name].schema) for name in tables} == SCHEMAS
    assert tables["connections"].height == 6
    assert tables["points"].height > 100


def test_rows_come_by_connection_and_keep_their_order_within(tmp_path: Path) -> None:
    rows = [{"connection_id": c, "time_ns": t} for c, t in ((2, 9), (2, 5), (0, 7), (1, 1), (0, 3))]
    frame("events", rows).write_parquet(tmp_path / "events.parquet")
    sorted_rows = Tables(tmp_path)["events"].select("connection_id", "time_ns").rows()
    assert sorted_rows == [(0, 7), (0, 3), (1, 1), (2, 9), (2, 5)]


def test_a_file_is_read_once_and_only_when_asked_for(tmp_path: Path) -> None:
    Trace().write(tmp_path)
    (tmp_path / "rtt.parquet").write_bytes(b"damaged")
    tables = Tables(tmp_path)
    before = tables["subflows"]
    shutil.rmtree(tmp_path)
    assert tables["subflows"] is before


def test_cells_without_tables_have_empty_ones_with_columns(synthetic: Callable[..., Synthetic]) -> None:
    cell = read_run(synthetic(repetitions=1).build()).cells[0]
    assert read_tables(cell)["connections"].height == 3
    assert cell.directory is not None
    shutil.rmtree(cell.directory / "tables")
    empty = read_tables(cell)
    assert not empty.exist
    assert all(empty[name].is_empty() and dict(empty[name].schema) == SCHEMAS[name] for name in SCHEMAS)


def test_columns_that_are_not_there_yet_are_null_and_those_unknown_are_left_out(tmp_path: Path) -> None:
    pl.DataFrame({"connection_id": [3], "colour": ["red"]}).write_parquet(tmp_path / "acks.parquet")
    row = Tables(tmp_path)["acks"].row(0, named=True)
    assert row == {**dict.fromkeys(SCHEMAS["acks"]), "connection_id": 3}


@pytest.mark.parametrize("version", [None, "1"])
def test_the_first_schema_is_upgraded(tmp_path: Path, version: str | None) -> None:
    metadata = {VERSION_KEY: version} if version else {}
    connection = {"connection_id": 4, "kind": "mptcp", "interfaces": "wlan0,rmnet0", "bytes_down": 70}
    pl.DataFrame([connection]).write_parquet(tmp_path / "connections.parquet", metadata=metadata)
    counts = {
        f"{name}_{direction}": number
        for number, direction in ((1, "up"), (50, "down"))
        for name in ("segments", "payload", "unique", "retransmitted_segments", "retransmitted_bytes")
    }
    flow = {"connection_id": 4, "subflow_id": 0, "interface": "rmnet0", **counts}
    pl.DataFrame([flow]).write_parquet(tmp_path / "subflows.parquet", metadata=metadata)
    tables = Tables(tmp_path)
    assert tables["connections"].row(0, named=True)["networks"] == "wifi,cellular"
    subflow = tables["subflows"].row(0, named=True)
    assert (subflow["network"], subflow["used"], subflow["payload_down"]) == ("cellular", True, 50)
    down = tables["directions"].filter(direction="down").row(0, named=True)
    assert (down["segments"], down["unique_bytes"], down["level"], down["rtt_samples"]) == (50, 50, "tcp", None)
    assert tables["points"].is_empty()


def test_tables_of_a_newer_mptrace_are_refused(tmp_path: Path) -> None:
    trace = Trace()
    trace.frame("connections").write_parquet(tmp_path / "connections.parquet", metadata={VERSION_KEY: "99"})
    with pytest.raises(TablesError, match="schema 99"):
        Tables(tmp_path)["connections"]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    Trace().write(tmp_path)
    (tmp_path / "rtt.parquet").write_text(json.dumps({}))
    with pytest.raises(TablesError, match=r"rtt\.parquet: cannot be read .* `mplab analyze`"):
        Tables(tmp_path)["rtt"]
