"""How a cell becomes invalid or failed, and the content of its report."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mplab.base.errors import CheckError, DeviceError, InvalidCellError, StepError
from mplab.lab.android import AndroidSide, PhoneCheckPart, PhoneLook
from tests.fakes.bench import CellBench, experiment_text
from tests.fakes.lab import FakePart, connection_using, trace_of
from tests.fakes.scenario import CheckingScenario

Arrange = Callable[[CellBench], object]


def probes(*factors: float) -> Arrange:
    return lambda bench: bench.lab.shaper.rates.extend(factors)


def active(**found: object) -> Arrange:
    return lambda bench: bench.lab.phone.active.update(found)


def links(**counters: int) -> Arrange:
    return lambda bench: bench.lab.shaper.moved.update({name.replace("__", "."): n for name, n in counters.items()})


def proxy_uses(*algorithms: str) -> Arrange:
    return lambda bench: bench.lab.proxy.records.extend(connection_using(name) for name in algorithms)


def shows(*interfaces: str, mptcp: bool = False) -> Arrange:
    return lambda bench: setattr(bench.lab, "trace", trace_of(*interfaces, mptcp=mptcp))


def part(*verdict: str, error: Exception | None = None) -> Arrange:
    def arrange(bench: CellBench) -> None:
        added = FakePart(bench.lab.script, "phone", "app")
        added.verdict = list(verdict)
        bench.lab.parts.append(added)
        if error is not None:
            bench.lab.script.at("phone.start", error)

    return arrange


WAY = "phone-1: IPv6 is open: its ip6tables rules are gone; apps may go past the transport"

INVALID: dict[str, tuple[Arrange, str, list[str], bool]] = {
    "links": (probes(0.5, 0.5, 0.5), "sptcp-wifi", ["wlan0: rate down", "wlan0: rate up", "rmnet0: rate down"], False),
    "transport not active": (
        active(mptcp=True),
        "sptcp-wifi",
        ["the test connection was Multipath TCP, single-path TCP was requested"],
        False,
    ),
    "plain TCP instead of MPTCP": (active(mptcp=False), "mptcp", ["the test connection was plain TCP"], False),
    "other interface": (active(local=["10.64.2.2"]), "sptcp-wifi", ["the test connection left from"], False),
    "agent's congestion control": (
        active(congestion_control="bbr"),
        "sptcp-wifi",
        ["the agent's sockets use bbr, cubic was requested"],
        False,
    ),
    "unknown congestion control": (
        active(congestion_control=""),
        "sptcp-wifi",
        ["the agent's sockets use an unknown congestion control, cubic was requested"],
        False,
    ),
    "receive buffer": (
        active(receive_buffer_bytes=131_072),
        "sptcp-wifi: {receive_buffer: 64 KiB}",
        ["the receive buffer of the phone's sockets has 131072 bytes, at most 65536 was requested"],
        False,
    ),
    "unknown receive buffer": (
        active(),
        "sptcp-wifi: {receive_buffer: 64 KiB}",
        ["the receive buffer of the phone's sockets has an unknown size"],
        False,
    ),
    "proxy's congestion control": (
        proxy_uses("bbr"),
        "sptcp-wifi",
        ["the proxy's sockets used bbr, cubic, cubic was requested"],
        True,
    ),
    "captured elsewhere": (shows("wlan0", "rmnet0"), "sptcp-wifi", ["2000 bytes went over another interface"], True),
    "nothing captured": (shows(), "sptcp-wifi", ["no TCP connection was captured on wlan0"], True),
    "MPTCP captured": (shows("wlan0", mptcp=True), "sptcp-wifi", ["Multipath TCP was negotiated"], True),
    "fallback captured": (shows("wlan0"), "mptcp", ["1 of 1 connections were plain TCP"], True),
    "emulator lost packets": (
        links(wlan0__up__kernel_dropped=3),
        "sptcp-wifi",
        ["the link emulator lost 3 packets that it should not have"],
        True,
    ),
    "lab's part at the end": (part(WAY), "sptcp-wifi", [WAY], True),
    "lab's part at the start": (part(error=InvalidCellError(WAY, "hot")), "sptcp-wifi", [WAY, "hot"], False),
}
"""Fault, transport, start of each reason, and whether the scenario ran."""


@pytest.mark.parametrize(("arrange", "transport", "begin", "ran"), INVALID.values(), ids=INVALID)
def test_a_treatment_that_is_not_the_requested_one_makes_the_cell_invalid(
    bench: CellBench, arrange: Arrange, transport: str, begin: list[str], ran: bool
) -> None:
    arrange(bench)
    report = bench.run(experiment_text(transports=transport))
    assert report.outcome == "invalid"
    starts = [any(reason.startswith(start) for reason in report.reasons) for start in begin]
    assert all(starts), report.reasons
    assert bool(bench.lab.script.of("scenario.run")) == ran
    assert bench.lab.clean


@pytest.mark.parametrize("call", ["scenario.check", "scenario.prepare", "scenario.run"])
@pytest.mark.parametrize(
    ("error", "outcome"), [(CheckError("the host is too busy"), "invalid"), (StepError("no browser"), "failed")]
)
def test_a_scenario_may_find_a_cell_invalid_at_any_step(
    tmp_path: Path, call: str, error: Exception, outcome: str
) -> None:
    bench = CellBench.in_folder(tmp_path, CheckingScenario)
    bench.lab.script.at(call, error)
    report = bench.run()
    assert (report.outcome, report.reasons) == (outcome, [str(error)])
    assert bench.lab.clean


def test_every_reason_is_there(bench: CellBench) -> None:
    bench.lab.proxy.records.append(connection_using("bbr"))
    bench.lab.shaper.moved["wlan0.up.dropped_memory"] = 1
    shows("wlan0", "rmnet0")(bench)
    part(WAY)(bench)
    report = bench.run()
    assert [reason.split()[0] for reason in report.reasons] == ["the", "2000", "the", "phone-1:"]


@pytest.mark.parametrize("wrong", [1, 2])
def test_a_probe_that_was_disturbed_is_made_again(bench: CellBench, wrong: int) -> None:
    probes(*[0.5] * wrong)(bench)
    report = bench.run()
    assert report.outcome == "ok"
    assert report.warnings == [f"the links were probed {wrong + 1} times before they were as requested"]
    assert len(bench.lab.script.of("shaper.probe")) == wrong + 1


def test_a_shaper_that_sets_a_wrong_rate_is_probed_three_times(bench: CellBench) -> None:
    probes(*[0.5] * 9)(bench)
    report = bench.run()
    assert report.outcome == "invalid"
    assert len(bench.lab.script.of("shaper.probe")) == 3
    measured = report.links["wlan0"].measured
    assert measured is not None
    assert measured.down_kbps == 10_000.0


def test_a_probe_without_an_answer_fails_the_cell(bench: CellBench) -> None:
    bench.lab.script.at("shaper.probe", DeviceError("probe", "wlan0 does not answer"))
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", ["probe: wlan0 does not answer"])


WARNED: dict[str, tuple[Arrange, str]] = {
    "captures": (lambda b: setattr(b.lab.phone, "dropped", 4), "phone-wlan0.pcapng: 4 packets were dropped"),
    "late": (
        links(wlan0__down__late_packets=20, wlan0__down__packets_out=100),
        "wlan0.down: 20 of 100 packets left the link emulator late",
    ),
    "load": (lambda b: setattr(b.lab.host, "busy", 0.9), "the host was overloaded: other programs left 0.2 processors"),
    "shaper": (lambda b: b.lab.shaper.caveats.append("router wifi: no ethtool"), "router wifi: no ethtool"),
    "stall": (
        lambda b: b.lab.script.at("scenario.run", lambda: b.lab.clock.jump(60.0)),
        "mplab did not run for 59.5 s (",
    ),
}


@pytest.mark.parametrize(("arrange", "text"), WARNED.values(), ids=WARNED)
def test_what_disturbs_a_cell_is_a_warning_and_costs_nothing(bench: CellBench, arrange: Arrange, text: str) -> None:
    arrange(bench)
    report = bench.run()
    assert (report.outcome, report.reasons) == ("ok", [])
    assert any(warning.startswith(text) for warning in report.warnings), report.warnings


def test_a_scenarios_warning_counts_once(bench: CellBench) -> None:
    def warn() -> None:
        for _ in range(2):
            bench.scenario.contexts[-1].warn("a dialog was closed")

    bench.lab.script.at("scenario.run", warn)
    assert bench.run().warnings == ["a dialog was closed"]


@pytest.mark.parametrize("outcome", ["failed", "invalid"])
def test_warnings_of_a_cell_that_is_not_ok_are_kept(bench: CellBench, outcome: str) -> None:
    error = StepError("no button") if outcome == "failed" else CheckError("busy")

    def warn() -> None:
        bench.scenario.contexts[-1].warn("a dialog was closed")
        raise error

    bench.lab.script.at("scenario.run", warn)
    report = bench.run()
    assert (report.outcome, report.warnings) == (outcome, ["a dialog was closed"])


LOST: dict[str, tuple[Exception, list[str]]] = {
    "consequence": (StepError("curl: timed out"), ["lab: linkem and nginx ended", "curl: timed out"]),
    "the same": (DeviceError("lab", "linkem and nginx ended"), ["lab: linkem and nginx ended"]),
    "invalid": (CheckError("no sound"), ["lab: linkem and nginx ended", "no sound"]),
}


@pytest.mark.parametrize(("error", "reasons"), LOST.values(), ids=LOST)
def test_a_dead_part_of_the_lab_is_named_before_its_consequence(
    bench: CellBench, error: Exception, reasons: list[str]
) -> None:
    def die() -> None:
        bench.lab.dies("linkem", "nginx")
        raise error

    bench.lab.script.at("scenario.run", die)
    assert bench.run().reasons == reasons


def test_a_part_that_dies_unnoticed_fails_the_cell(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", lambda: bench.lab.dies("linkem"))
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", ["lab: linkem ended"])
    assert bench.lab.clean


def test_a_dead_agent_is_named_before_its_consequence(bench: CellBench) -> None:
    def die() -> None:
        bench.lab.phone.kill("mpflex agent")
        raise StepError("curl failed (18): transfer closed")

    bench.lab.script.at("scenario.run", die)
    first, second = bench.run().reasons
    assert first.startswith("mpflex agent: has ended by itself (-9)")
    assert second == "curl failed (18): transfer closed"


def test_an_agent_that_dies_unnoticed_fails_the_cell(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", lambda: bench.lab.phone.kill("mpflex agent"))
    report = bench.run()
    assert report.outcome == "failed"
    assert len(report.reasons) == 1
    assert report.reasons[0].startswith("mpflex agent: has ended by itself (-9)")


def test_a_capture_that_dies_fails_the_cell(bench: CellBench) -> None:
    bench.lab.script.at("scenario.run", lambda: bench.lab.proxy_machine.kill("mptrace capture"))
    report = bench.run()
    assert report.outcome == "failed"
    assert report.reasons[0].startswith("capture of proxy:eth0: did not complete")


def test_services_that_no_longer_answer_fail_the_cell(bench: CellBench) -> None:
    bench.lab.script.at("services.check", None, DeviceError("video", "does not answer"))
    report = bench.run()
    assert (report.outcome, report.reasons) == ("failed", ["video: does not answer"])
    assert bench.lab.script.of("scenario.run") == ["scenario.run"]


class Android(AndroidSide):
    """A phone on which traffic can bypass the agent."""

    def __init__(self) -> None:
        pass

    def log(self) -> Any:
        return SimpleNamespace(save=lambda _path: None)

    def look(self, _app: object) -> PhoneLook:
        return PhoneLook({"ipv6_open": "true"}, 1.5, ["hot"], [WAY])

    def ways_past(self) -> list[str]:
        return [WAY]


def test_a_phone_past_whose_agent_traffic_can_go_makes_its_cell_invalid(bench: CellBench) -> None:
    job: Any = SimpleNamespace(app=None, directory=bench.folder)
    bench.lab.parts.append(PhoneCheckPart(Android(), job))
    report = bench.run()
    assert (report.outcome, report.reasons, report.warnings) == ("invalid", [WAY], ["hot"])
    assert (report.phone["ipv6_open"], report.clock_offset_ms) == ("true", 1.5)
    assert bench.steps == ["phone"]


def test_an_app_that_never_reached_the_agent_makes_the_cell_invalid(bench: CellBench) -> None:
    reason = "no app gave the agent a connection, and without root nothing else leads to it"
    bench.lab.endpoints = replace(bench.lab.endpoints, app_proxy="127.0.0.1:1080")
    assert bench.run().reasons == [reason]
    bench.lab.phone.records = [{"event": "connection", "src": "10.0.0.1:5", "bytes_up": 5, "bytes_down": 0}]
    assert bench.run().reasons == []
