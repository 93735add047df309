"""How long bytes waited for in-order delivery, from tables and logs of a cell."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path

import polars as pl
import pytest

from mplab.scenarios.base.scoring.waiting import Wait, wait_of

PORT = 3478
OTHER, CALL, SECOND = 1, 2, 3


def reordering(
    connection: int, direction: str, *, mean: float | None, size: int, unknown: int = 0
) -> dict[str, object]:
    delays = {"delay_mean_ms": mean, "delay_p95_ms": None if mean is None else 4 * mean}
    return {
        "connection_id": connection,
        "direction": direction,
        "bytes": size,
        "unknown_bytes": unknown,
        **delays,
    }


ROWS = [
    reordering(OTHER, "down", mean=60.0, size=100_000),
    reordering(CALL, "down", mean=10.0, size=4_000, unknown=1_000),
    reordering(SECOND, "down", mean=30.0, size=1_000),
    reordering(SECOND + 1, "down", mean=None, size=500, unknown=500),
    reordering(CALL, "up", mean=0.0, size=2_000),
]


def folder_with(path: Path, *, log: str = "", records: list[dict[str, object]] | None = None) -> Path:
    ends = path / "tables" / "ends"
    ends.mkdir(parents=True)
    pl.DataFrame(ROWS).write_parquet(ends / "reordering.parquet")
    if records is not None:
        (path / "logs").mkdir()
        (path / log).write_text("".join(json.dumps(record) + "\n" for record in records) + '{"event": "conn')
    return path


def connections(*own: int) -> Mapping[str, pl.DataFrame]:
    return ported("destination_port", own, server_port=7001)


def ported(column: str, own: Collection[int], **others: int) -> Mapping[str, pl.DataFrame]:
    ports = {identity: PORT if identity in own else 443 for identity in (OTHER, CALL, SECOND, SECOND + 1)}
    frame = pl.DataFrame({"connection_id": list(ports), column: list(ports.values())})
    return {"connections": frame.with_columns(pl.lit(port).alias(name) for name, port in others.items())}


def test_without_a_proxy_the_port_is_that_of_the_server(tmp_path: Path) -> None:
    direct = ported("server_port", (CALL,), destination_port=0)
    assert wait_of(direct, folder_with(tmp_path), "down", PORT) == Wait(10.0, 40.0)


def test_of_connections_it_is_the_mean_over_their_bytes(tmp_path: Path) -> None:
    folder = folder_with(tmp_path)
    assert wait_of(connections(CALL), folder, "down", PORT) == Wait(10.0, 40.0)
    assert wait_of(connections(CALL), folder, "up", PORT) == Wait(0.0, 0.0)
    several = wait_of(connections(CALL, SECOND, SECOND + 1), folder, "down", PORT)
    assert several == Wait((3 * 10 + 30) / 4, 4 * (3 * 10 + 30) / 4)
    assert wait_of(connections(SECOND), folder, "up", PORT) is None


@pytest.mark.parametrize(("direction", "log"), [("down", "logs/agent.jsonl"), ("up", "logs/proxy.jsonl")])
def test_of_a_session_it_is_that_of_paths_and_streams(tmp_path: Path, direction: str, log: str) -> None:
    call = {"event": "connection", "dst": f"10.65.102.1:{PORT}", "stream": 3}
    records: list[dict[str, object]] = [
        {"event": "path", "interface": "wlan0"},
        {**call, f"bytes_{direction}": 3_000, "waited_ms": 8.0},
        {**call, f"bytes_{direction}": 1_000, "waited_ms": 16.0},
        {**call, "dst": "10.65.102.2:443", f"bytes_{direction}": 90_000, "waited_ms": 500.0},
    ]
    folder = folder_with(tmp_path, log=log, records=records)
    wait = wait_of(connections(), folder, direction, PORT)  # type: ignore[arg-type]
    within = 0.0 if direction == "up" else (100 * 60 + 3 * 10 + 30) / 104
    assert wait is not None
    assert wait.mean_ms == pytest.approx(within + 10.0)
    assert wait.p95_ms is None


def test_it_is_not_known_without_captures_or_without_the_log(tmp_path: Path) -> None:
    assert wait_of(connections(CALL), tmp_path / "no captures", "down", PORT) is None
    older = [{"event": "connection", "dst": f"10.65.102.1:{PORT}", "stream": 3, "bytes_down": 9}]
    folder = folder_with(tmp_path / "older", log="logs/agent.jsonl", records=older)
    assert wait_of(connections(), folder, "down", PORT) is None
    assert wait_of(connections(), folder_with(tmp_path / "none"), "down", PORT) is None
