"""Results of a cell: its report and its files."""

import json
from pathlib import Path
from typing import Any

import pytest

from mplab.cell.report import CellReport
from mplab.format.captured import ConnectionRow, SubflowRow
from mplab.format.cell import CellRecord, CongestionControlRecord, LinkAsked, SessionProof, SubflowCount, TransportProof
from tests.fakes.bench import CellBench, RunBench, experiment_text


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def down_kbps(report: CellReport) -> float | None:
    return report.links["wlan0"].measured.down_kbps


def test_links_are_kept_as_requested_and_as_measured(bench: CellBench) -> None:
    report = bench.run()
    assert set(report.links) == {"wlan0", "rmnet0"}
    wifi = report.links["wlan0"]
    assert wifi.asked == LinkAsked(down_kbps=20_000.0, up_kbps=20_000.0, rtt_ms=20.0, loss_percent=0.0)
    assert wifi.measured.rtt_ms_median == 20.0
    assert wifi.where == "memory of wlan0"
    probes = json.loads((bench.directory / "logs" / "probes.json").read_text())
    assert [probe["wlan0"]["down_kbps"] for probe in probes] == [20_000.0]


def test_every_probe_is_kept(bench: CellBench) -> None:
    bench.lab.shaper.rates += [0.5, 1.0]
    bench.run()
    probes = json.loads((bench.directory / "logs" / "probes.json").read_text())
    assert [probe["rmnet0"]["up_kbps"] for probe in probes] == [5_000.0, 10_000.0]


def test_counters_before_and_after_are_kept(bench: CellBench) -> None:
    bench.run()
    folder = bench.directory / "counters"
    assert sorted(path.name for path in folder.iterdir()) == [
        *("links-after.json", "links-before.json", "phone-after.json", "phone-before.json"),
        *("proxy-after.json", "proxy-before.json"),
    ]
    before, after = (json.loads((folder / f"phone-{when}.json").read_text()) for when in ("before", "after"))
    assert after["wlan0.rx_bytes"] - before["wlan0.rx_bytes"] == 1000


def test_traffic_of_each_interface_is_observed_last(bench: CellBench) -> None:
    bench.run()
    first, last = lines(bench.directory / "scenario.jsonl")
    assert (first["event"], last["event"]) == ("fake", "traffic")
    assert last["interfaces"]["wlan0"] == {"bytes_up": 10, "bytes_down": 1000, "packets_up": 0, "packets_down": 0}
    assert set(last["interfaces"]) == {"wlan0", "rmnet0"}


def test_the_proof_holds_what_the_transport_counted(bench: CellBench) -> None:
    bench.lab.phone.moved |= {"MPTcpExt.MPCapableSYNTX": 2, "TcpExt.TCPTimeouts": 1}
    report = bench.run(experiment_text(transports="mptcp"))
    assert report.proof.active["mptcp"] is True
    assert report.proof.counters == {"MPTcpExt.MPCapableSYNTX": 2}
    assert report.proof.subflows["rmnet0"] == SubflowCount(established=1, bytes_up=1000, bytes_down=1000)
    assert report.proof.session == SessionProof()


def test_a_connection_from_before_the_captures_is_no_evidence(bench: CellBench) -> None:
    own = bench.lab.trace
    bench.run()
    trace = bench.lab.read_trace([bench.directory / "phone-wlan0.pcapng"])
    old: ConnectionRow = {**trace["connections"][0], "connection_id": 2, "syn_seen": False, "kind": "mptcp"}
    flow: SubflowRow = {**trace["subflows"][0], "connection_id": 2, "interface": "rmnet0"}
    bench.lab.trace = {
        "connections": [*trace["connections"], old],
        "subflows": [*trace["subflows"], flow],
    }
    assert own is None
    report = bench.run()
    assert (report.outcome, set(report.proof.subflows)) == ("ok", {"wlan0"})


def test_captures_are_listed(bench: CellBench) -> None:
    report = bench.run()
    assert [capture.file for capture in report.captures] == [
        *("phone-wlan0.pcapng", "phone-rmnet0.pcapng", "proxy.pcapng"),
    ]
    assert {capture.packets for capture in report.captures} == {7}
    assert all(capture.headers_only for capture in report.captures)


def test_congestion_control_of_all_senders_is_kept(bench: CellBench) -> None:
    bench.lab.origin_algorithm = "reno"
    report = bench.run()
    assert report.congestion_control == CongestionControlRecord(agent="cubic", origin="reno", proxy="cubic")


def test_the_proxys_log_of_the_cell_is_kept(bench: CellBench) -> None:
    bench.lab.proxy.records = [{"event": "session"}]
    bench.run()
    assert lines(bench.directory / "logs" / "proxy.jsonl") == bench.lab.proxy.records


def test_load_of_the_host_is_kept(bench: CellBench) -> None:
    bench.lab.host.busy = 0.25
    host = bench.run().host
    assert host.load_before == host.load_after == 0.25
    assert host.cpu_busy_percent == 12.5
    assert (host.busy_percent, host.free_cpus, host.overloaded) == (25.0, 1.5, False)
    assert host.needed_cpus == 0.5


def test_an_overloaded_host_is_flagged_also_when_the_scenario_fails(bench: CellBench) -> None:
    bench.lab.host.busy = 0.95
    bench.lab.limit.expires = 1
    report = bench.run()
    assert report.outcome == "failed"
    assert report.host.overloaded is True


def test_the_phone_says_who_it_is(bench: CellBench) -> None:
    assert bench.run().phone == {"name": "phone", "model": "fake phone", "os": "memory", "kernel": "6.0"}


def test_a_cell_that_fails_early_reports_what_it_knows(bench: CellBench) -> None:
    bench.lab.shaper.rates += [0.1] * 3
    report = bench.run()
    assert down_kbps(report) == 2_000.0
    assert (report.proof, report.captures) == (TransportProof(), [])
    assert report.congestion_control == CongestionControlRecord()
    assert report.phone["name"] == "phone"


@pytest.mark.parametrize("case", ["ok", "invalid", "failed"])
def test_cell_json_holds_the_whole_report(tmp_path: Path, case: str) -> None:
    run = RunBench.planned(tmp_path, experiment_text())
    if case == "invalid":
        run.lab.shaper.rates += [0.1] * 3
    elif case == "failed":
        run.lab.limit.expires = 1
    (cell,) = run.execute().values()
    assert isinstance(cell, CellRecord)
    assert cell.outcome == case
    assert bool(cell.reasons) == (case != "ok")
    assert cell.links["wlan0"].asked.down_kbps == 20_000.0
    assert cell.phone["model"] == "fake phone"
    assert cell.host.load_before == 0.25
    assert cell.timings_s["probe"] >= 0
    assert cell.started.endswith("Z")
    assert cell.spec.id == cell.id
    assert (cell.attempt, [attempt.outcome for attempt in cell.attempts]) == (1, [case])
    assert len(cell.captures) == (3 if case == "ok" else 0)
