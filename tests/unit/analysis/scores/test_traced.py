"""Metrics of the traces: planted shares, delays and connections are found again."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from mplab.analysis.record.schema import SCHEMAS, VERSION, VERSION_KEY
from mplab.analysis.record.tables import FOLDER, LOOPBACK
from mplab.analysis.scores.plugins import ScoringPlugin
from mplab.analysis.scores.traced import METRICS, extended, score
from tests.unit.analysis.traces import Trace

Row = Mapping[str, Any]


def tables(**rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
    frames = {}
    for name in SCHEMAS:
        frame = pl.DataFrame(list(rows.get(name, ())), infer_schema_length=None)
        columns = [
            (pl.col(column) if column in frame.columns else pl.lit(None)).cast(kind).alias(column)
            for column, kind in SCHEMAS[name].items()
        ]
        frames[name] = frame.select(columns) if frame.columns else pl.DataFrame(schema=SCHEMAS[name])
    return frames


def found(phone: Mapping[str, pl.DataFrame], loopback: Mapping[str, pl.DataFrame] | None = None) -> dict[str, float]:
    values = score(phone, loopback or tables())
    return {" ".join((value.metric, *value.labels.values())): value.value for value in values}


def connection(number: int, duration_s: float, down: int, up: int = 100, **more: Any) -> Row:
    facts = {"connection_id": number, "kind": "mptcp", "syn_seen": True, "fallback": False, "subflows": 2}
    sent_again = {"reinjected_up": 0, "reinjected_down": 0}
    return {**facts, **sent_again, "duration_s": duration_s, "bytes_down": down, "bytes_up": up, **more}


def subflow(number: int, identity: int, network: str, down: int, **more: Any) -> Row:
    role = "additional" if identity else "initial"
    facts = {"connection_id": number, "subflow_id": identity, "role": role, "network": network, "established": True}
    return {**facts, "used": down > 0, "unique_up": 0, "unique_down": down, **more}


CONNECTIONS = [
    connection(0, 0.5, 1000, join_delay_ms=80.0),
    connection(1, 2.0, 3000, join_delay_ms=100.0, reinjected_down=300),
    connection(2, 4.0, 6000, kind="tcp", subflows=1),
]
SUBFLOWS = [
    subflow(0, 0, "wifi", 1000, rtt_handshake_ms=50.0),
    subflow(0, 1, "cellular", 0, rtt_handshake_ms=70.0),
    subflow(1, 0, "wifi", 1000, rtt_handshake_ms=52.0),
    subflow(1, 1, "cellular", 2000, rtt_handshake_ms=74.0),
    subflow(2, 0, "wifi", 6000, rtt_handshake_ms=90.0),
]
DIRECTIONS = [
    {"connection_id": 1, "subflow_id": 1, "level": "tcp", "direction": "down", "retransmitted_bytes": 400}
    | {"hole_bytes": 100, "rtt_samples": 9, "rtt_mean_ms": 0.1},
    {"connection_id": 1, "subflow_id": 1, "level": "tcp", "direction": "up", "retransmitted_bytes": 0}
    | {"hole_bytes": 0, "rtt_samples": 3, "rtt_mean_ms": 75.0},
    *(
        {"connection_id": number, "subflow_id": -1, "level": "mptcp", "direction": direction}
        | {"window_mean": 1000.0 * window, "flight_mean": 1000.0 * flight}
        for number, direction, window, flight in (
            (0, "up", 70, 1),
            (0, "down", 70, 2),
            (1, "up", 50, 3),
            (1, "down", 60, 8),
        )
    ),
]


def test_planted_values_are_found() -> None:
    values = found(tables(connections=CONNECTIONS, subflows=SUBFLOWS, directions=DIRECTIONS))
    assert values == pytest.approx(
        {
            "network_share wifi": 80.0,
            "network_share cellular": 20.0,
            "fallback_share": 0.0,
            "subflow_count": 2.0,
            "join_delay": 90.0,
            "unused_subflows": 50.0,
            "primary_share": 50.0,
            "wholly_on_primary": 50.0,
            "both_paths_used": 50.0,
            "handshake_delay wifi": 52.0,
            "join_handshake cellular": 72.0,
            "rtt_mean cellular": 75.0,
            "retransmitted_share up": 0.0,
            "retransmitted_share down": 5.0,
            "reinjected_bytes up": 0.0,
            "reinjected_bytes down": 0.3,
            "reinjected_share up": 0.0,
            "reinjected_share down": 3.0,
            "free_window": 42.0,
            "retransmitting_connections up": 0.0,
            "retransmitting_connections down": 50.0,
            "reinjecting_connections up": 0.0,
            "reinjecting_connections down": 50.0,
            "app_connections": 3.0,
            "app_connection_duration": 2.0,
            "app_connections_short": 100 / 3,
            "app_connections_short_bytes": 100 * 1100 / 10300,
            **{f"app_connection_bytes up {quantile}": 0.1 for quantile in ("50 %", "75 %", "90 %")},
            "app_connection_bytes down 50 %": 3.0,
            "app_connection_bytes down 75 %": 4.5,
            "app_connection_bytes down 90 %": 5.4,
        }
    )


def test_connections_of_apps_are_those_on_the_loopback_interface() -> None:
    apps = tables(connections=[connection(0, 0.2, 8000, up=0, kind="tcp")])
    values = found(tables(connections=CONNECTIONS, subflows=SUBFLOWS), apps)
    assert values["app_connections"] == 1.0
    assert values["app_connection_duration"] == pytest.approx(0.2)
    assert values["transport_overhead"] == pytest.approx(25.0)


def test_a_captured_network_without_subflows_has_the_share_0() -> None:
    only_wifi = tables(connections=CONNECTIONS[2:], subflows=SUBFLOWS[4:])
    values = score(only_wifi, tables(), ("wifi", "cellular"))
    shares = {value.labels["network"]: value.value for value in values if value.metric == "network_share"}
    assert shares == {"cellular": 0.0, "wifi": 100.0}


def test_copies_are_not_headers(tmp_path: Path) -> None:
    """The interfaces carry 10000 bytes: 8000 of the apps, 1500 copies, and so 500 of headers."""
    plugin = extended(ScoringPlugin("none", (), lambda *_: []))
    capture = {"file": "captures/phone-rmnet0.pcapng", "interface": "rmnet0"}
    path = {"bytes_down": 8000, "copied_down": 1500}
    spec = {"id": "0001-download-mpflex-near-r1", "scenario": "download", "transport": "mpflex", "link": "near"}
    record = {"id": spec["id"], "spec": spec, "outcome": "ok", "captures": [capture]}
    proof = {"session": {"paths": {"wlan0": path}}}
    (tmp_path / "cell.json").write_text(json.dumps(record | {"proof": proof}))
    apps = tables(connections=[connection(0, 0.2, 8000, up=0, kind="tcp")])
    folder = tmp_path / FOLDER / LOOPBACK
    folder.mkdir(parents=True)
    apps["connections"].write_parquet(folder / "connections.parquet", metadata={VERSION_KEY: str(VERSION)})
    values = plugin.score([], tables(connections=CONNECTIONS, subflows=SUBFLOWS), tmp_path)
    by_name = {value.metric: value.value for value in values}
    assert by_name["transport_overhead"] == pytest.approx(6.25)
    assert by_name["copied_share"] == pytest.approx(18.75)


def test_a_cell_without_connections_has_no_values() -> None:
    assert found(tables()) == {}


def test_each_value_is_declared_and_within_its_limits() -> None:
    trace = Trace()
    values = score({name: trace.frame(name) for name in SCHEMAS}, tables())
    declared = {metric.name: metric for metric in METRICS}
    assert len(declared) == len(METRICS)
    for value in values:
        metric = declared[value.metric]
        low, high = metric.limits
        assert set(value.labels) == set(metric.labels)
        assert (low is None or low <= value.value) and (high is None or value.value <= high)  # noqa: PT018
