"""The phones' records become tables: each record once, with the columns of the schema."""

import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from mplab.analysis.record import phonelog

RUN = "0123456789abcdef"
_ROUTE = {"family": 4, "table": 254, "metric": 0, "type": "unicast"}


def _line(kind: str, n: int, **fields: object) -> str:
    return json.dumps({"kind": kind, "t": 1000.5 + n, "mono_s": 5.0 + n, "run": RUN, "n": n, **fields}) + "\n"


def _batch(name: str, lines: str) -> str:
    header = {
        "kind": "batch",
        "id": name,
        "received": 1.0,
        "lines": lines.count("\n"),
        "bytes": len(lines),
        "sha256": "",
    }
    return json.dumps(header) + "\n" + lines


def _store(root: Path) -> Path:
    phone = root / "store" / "phone-a"
    phone.mkdir(parents=True)
    (root / "store" / "lock").touch()
    wifi = _line("wifi", 2, why="first", source="nl80211", connected=True, rssi_dbm=-61)
    (phone / "2026-11-22.jsonl").write_text(
        _batch("1", wifi + _line("wifi", 1, why="first", source="nl80211", connected=False)) + _batch("2", wifi)
    )
    (phone / "2026-11-23.jsonl").write_text(
        _batch("3", _line("routes", 4, why="change", routes=[_ROUTE]))
        + _batch("4", _line("heartbeat", 5, stored_bytes=1, unsent_batches=0, refused_batches=0, lost_records=0,
                            dropped={"batches": 1, "bytes": 2}, sources={"wifi": "nl80211"}))
        + '{"kind":"wi'
    )  # fmt: skip
    (phone / "2026-11-23.jsonl.torn-77").write_text("nonsense\n")
    return root / "store"


def test_each_record_once_with_the_columns_of_the_schema(tmp_path: Path) -> None:
    collected = phonelog.read(_store(tmp_path))

    assert sorted(collected.tables) == ["heartbeat", "routes", "wifi"]
    assert collected.skipped == 1
    wifi = collected.tables["wifi"]
    assert wifi["n"].to_list() == [1, 2]
    assert wifi["device"].to_list() == ["phone-a", "phone-a"]
    assert wifi["rssi_dbm"].to_list() == [None, -61.0]
    assert wifi.schema == phonelog.columns("wifi")
    assert "bssid" in wifi.columns
    assert collected.tables["routes"]["routes"].to_list() == [
        [{"family": 4, "table": 254, "interface": None, "gateway": None, "metric": 0, "type": "unicast"}]
    ]
    assert collected.tables["heartbeat"]["dropped"].to_list() == [{"batches": 1, "bytes": 2}]
    assert collected.tables["heartbeat"]["sources"].to_list() == ['{"wifi": "nl80211"}']


def test_a_phones_own_files_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    start = _line("start", 1, device="phone-b", version="0.1.0", recorded=["wifi"], hashed=False)
    compressed = gzip.compress((start + "".join(_line("stop", n, reason="x") for n in range(2, 2000))).encode())
    (tmp_path / "00000001.sent.jsonl.gz").write_bytes(compressed)
    (tmp_path / "00000002.jsonl.gz").write_bytes(compressed[: len(compressed) // 2])
    (tmp_path / "00000003.jsonl").write_text(_line("stop", 2000, reason="y") + _line("stop", 2001, reason="z")[:20])

    collected = phonelog.read(tmp_path)

    assert collected.tables["start"]["device"].to_list() == ["phone-b"]
    assert collected.tables["stop"].height == 1999
    assert set(collected.tables["stop"]["device"]) == {"phone-b"}  # files without a start included
    assert collected.skipped >= 1


def test_every_kind_of_the_schema_has_columns() -> None:
    kinds = json.loads(phonelog.SCHEMA.read_text(encoding="utf-8"))["properties"]["kind"]["enum"]

    for kind in kinds:
        schema = phonelog.columns(kind)
        assert next(iter(schema)) == "device"
        assert schema["mono_s"] == pl.Float64


def test_the_command_writes_parquet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = _store(tmp_path)

    assert phonelog.main([str(store), "-o", str(tmp_path / "out")]) == 0
    assert phonelog.main([str(tmp_path / "none"), "-o", str(tmp_path / "out")]) == 2

    assert pl.read_parquet(tmp_path / "out" / "wifi.parquet").equals(phonelog.read(store).tables["wifi"])
    captured = capsys.readouterr()
    assert "wifi.parquet: 2 records" in captured.out
    assert "1 lines are no records" in captured.err
    assert "is no directory" in captured.err
