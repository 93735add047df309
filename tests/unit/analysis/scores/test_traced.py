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
            "connections_by_subflows 1": 0.0,
            "connections_by_subflows 2": 100.0,
            "connections_by_subflows more": 0.0,
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
            "app_connections_within 10 s": 100.0,
            "app_connections_within 100 s": 100.0,
            "app_connections_small": 100.0,
            "app_bytes up": 0.3,
            "app_bytes down": 10.0,
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


def test_subflows_wait_for_their_handshake_and_are_counted() -> None:
    joined = subflow(1, 1, "cellular", 2000, rtt_handshake_ms=40.0, start_ns=0, first_payload_ns=100_000_000)
    counted = [connection(number, 1.0, 100, subflows=number) for number in range(4)]
    values = found(tables(connections=counted, subflows=[joined]))
    assert values["join_wait"] == pytest.approx(2.5)
    shares = {number: values[f"connections_by_subflows {number}"] for number in ("1", "2", "more")}
    assert shares == pytest.approx(dict.fromkeys(shares, 100 / 3)), (
        "a connection without an established one is left out"
    )


def test_round_trips_of_applications_are_those_of_data_acknowledgements() -> None:
    def sampled(number: int, level: str, samples: int, mean: float, deviation: float) -> Row:
        return {"connection_id": number, "subflow_id": -1, "level": level, "direction": "up"} | {
            "rtt_samples": samples,
            "rtt_mean_ms": mean,
            "rtt_stdev_ms": deviation,
        }

    directions = [
        sampled(0, "mptcp", 30, 40.0, 10.0),
        sampled(0, "tcp", 90, 9.0, 1.0),
        sampled(2, "tcp", 10, 80.0, 10.0),
    ]
    values = found(tables(connections=CONNECTIONS, directions=directions))
    assert values["data_rtt"] == pytest.approx(50.0)
    assert values["data_rtt_jitter"] == pytest.approx((30 * 40**2 / 40 + 10 * 80**2 / 40 + 100 - 50**2) ** 0.5)


def test_differences_of_round_trips_need_payload_and_samples() -> None:
    def sampled(number: int, identity: int, mean: float, samples: int = 3) -> Row:
        facts = {"connection_id": number, "subflow_id": identity, "level": "tcp", "direction": "up"}
        return facts | {"rtt_samples": samples, "rtt_mean_ms": mean}

    carried = [subflow(number, identity, "wifi", 100_000) for number in range(4) for identity in range(2)]
    carried[7] = subflow(3, 1, "wifi", 99_999)
    means = {0: (20.0, 30.0), 1: (20.0, 120.0), 2: (20.0, 300.0), 3: (20.0, 900.0)}
    directions = [
        sampled(number, identity, mean) for number, pair in means.items() for identity, mean in enumerate(pair)
    ]
    values = found(tables(connections=CONNECTIONS, subflows=carried, directions=directions))
    shares = [values[f"rtt_difference_within {label}"] for label in ("15 ms", "100 ms", "200 ms")]
    assert shares == pytest.approx([100 / 3, 200 / 3, 200 / 3])


def test_acknowledgements_are_weighted_by_their_bytes() -> None:
    def ack(level: str, size: int, count: int, number: int = 1, direction: str = "down") -> Row:
        return {"connection_id": number, "level": level, "direction": direction, "bytes": size, "count": count}

    acks = [ack("tcp", 10_000, 6), ack("tcp", 20_000, 2), ack("mptcp", 10_000, 1), ack("mptcp", 30_000, 3)]
    others = [ack("tcp", 5, 90, number=2), ack("tcp", 5, 90, direction="up")]
    sent = {"connection_id": 1, "subflow_id": 0, "level": "tcp", "direction": "up", "duplicate_acks": 2}
    values = found(tables(connections=CONNECTIONS, acks=acks + others, directions=[sent]))
    assert values["duplicate_acks"] == pytest.approx(20.0)
    assert values["small_acks tcp"] == pytest.approx(60.0)
    assert values["small_acks mptcp"] == pytest.approx(10.0)


def test_rates_of_changes_are_those_of_long_directions() -> None:
    def changes(unique: int, switches: int, rate: float) -> Row:
        facts = {"connection_id": 1, "level": "mptcp", "direction": "down", "unique_bytes": unique}
        return facts | {"switches": switches, "switches_per_s": rate}

    rows = [
        changes(1_000_000, 90, 9.0),
        changes(10**7, 99, 99.0),
        changes(10**7, 999, 101.0),
        changes(10**7, 999, 300.0),
    ]
    left_out = [changes(999_999, 9, 500.0), changes(10**7, 0, 0.0)]
    values = found(tables(connections=CONNECTIONS, directions=rows + left_out))
    assert values["switching_above 10/s"] == pytest.approx(75.0)
    assert values["switching_above 100/s"] == pytest.approx(50.0)


def test_windows_are_those_of_the_receiver() -> None:
    def side(number: int, direction: str, window: int, flight: int) -> Row:
        facts = {"connection_id": number, "subflow_id": -1, "level": "mptcp", "direction": direction}
        return facts | {"window_max": window, "flight_max": flight}

    connections = [connection(0, 1.0, 5_000), connection(1, 1.0, 50_000), connection(2, 1.0, 6_000)]
    directions = [side(0, "up", 64_000, 1), side(1, "up", 80_000, 1), side(1, "down", 10_000, 20_000)]
    values = found(tables(connections=connections, directions=[*directions, side(2, "up", 32_000, 1)]))
    assert values["largest_window 10 kB"] == pytest.approx(48.0)
    assert values["largest_window 100 kB"] == pytest.approx(80.0)
    assert "largest_window 1 MB" not in values
    assert values["window_filled"] == pytest.approx(25.0)


def test_times_and_causes_of_data_sent_again() -> None:
    def at(second: float, **more: Any) -> Row:
        return {"connection_id": 1, "time_ns": int((100 + second) * 1e9), **more}

    lives = [connection(1, 10.0, 5_000, start_ns=int(100e9))]
    again = [at(second) for second in (0.0, 1.9, 5.0, 8.5, 9.9)]
    reinjected = [at(1.0, cause="window"), at(3.0, cause="rto"), at(5.0, cause="rto"), at(7.0, cause="closed")]
    values = found(tables(connections=lives, retransmissions=again, reinjections=reinjected))
    parts = ("first fifth", "last fifth", "last twentieth")
    assert [values[f"again_within retransmissions {part}"] for part in parts] == pytest.approx([40.0, 40.0, 20.0])
    assert [values[f"again_within reinjections {part}"] for part in parts] == pytest.approx([25.0, 0.0, 0.0])
    assert values["reinjections_by_window"] == pytest.approx(25.0)


def test_apps_connections_by_time_and_size() -> None:
    sizes = [(9.9, 8_000), (10.0, 9_900), (99.0, 50_000), (200.0, 5_000)]
    rows = [connection(number, seconds, down) for number, (seconds, down) in enumerate(sizes)]
    values = found(tables(connections=[*rows, connection(4, 1.0, 0, up=0)]))
    assert values["app_connections_within 10 s"] == pytest.approx(40.0)
    assert values["app_connections_within 100 s"] == pytest.approx(80.0)
    assert values["app_connections_small"] == pytest.approx(50.0), "the second one has 100 bytes more upwards"
    assert (values["app_bytes up"], values["app_bytes down"]) == pytest.approx((0.4, 72.9))


def test_the_busiest_connection_has_most_objects() -> None:
    objects = [{"connection_id": number} for number in (0, 1, 1, 1, 2)]
    assert found(tables(connections=CONNECTIONS, objects=objects))["busiest_connection"] == pytest.approx(60.0)
