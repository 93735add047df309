"""A cell meets its request, or its reasons name the differences."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mplab.cell.judge import judge_captures, judge_emulation, judge_handed_over, judge_links, judge_punctuality
from mplab.drivers.capture import CaptureResult
from mplab.drivers.shaper import PathMeasurement
from mplab.format.direction import Direction, GilbertElliott
from mplab.format.experiment import Tolerance
from mplab.format.path import PathCondition
from mplab.format.trace import Trace

ASKED = {"wlan0": PathCondition.of(down_kbps=7040, up_kbps=2020, rtt_ms=50)}
MEASURED = PathMeasurement(down_kbps=7035, up_kbps=2021, rtt_ms_median=50.4, rtt_ms_iqr=0.1, loss_percent=0)
TOLERANCE = Tolerance(rtt_percent=10, rate_percent=10)


def test_a_link_within_tolerance_is_as_asked() -> None:
    assert judge_links(ASKED, {"wlan0": MEASURED}, TOLERANCE) == []


def test_each_quantity_that_is_off_is_named_with_both_numbers() -> None:
    off = replace(MEASURED, rtt_ms_median=56.0, up_kbps=1000)
    assert judge_links(ASKED, {"wlan0": off}, TOLERANCE) == [
        "wlan0: RTT 56 ms measured, 50 ms asked (off by 12%, 10 % allowed)",
        "wlan0: rate up 1000 kbit/s measured, 2020 kbit/s asked (off by 50%, 10 % allowed)",
    ]


def test_an_unlimited_rate_is_never_off() -> None:
    requested = {"wlan0": PathCondition.of(down_kbps=None, up_kbps=None, rtt_ms=50)}
    assert judge_links(requested, {"wlan0": MEASURED}, TOLERANCE) == []


LOSSY = {"wlan0": PathCondition.of(7040, 2020, 50, loss_percent=5)}
"""Loss on 9.75 % of the round trips."""


def connection(src: str, size: int) -> dict[str, Any]:
    return {"event": "connection", "src": src, "bytes_up": 77, "bytes_down": size}


@pytest.mark.parametrize(
    ("log", "good"),
    [
        ([{"event": "dns", "name": "dl.lab."}, connection("127.0.0.1:40000", 1000)], True),
        ([connection("", 1000)], False),  # the agent's own connection to the name server
        ([{"event": "connection", "src": "127.0.0.1:40000", "bytes_up": 0, "bytes_down": 0}], False),
        ([], False),
    ],
)
def test_an_app_that_has_to_come_to_the_agent_came(log: Any, good: bool) -> None:
    assert bool(judge_handed_over(log)) is not good


@pytest.mark.parametrize(
    ("percent", "good"), [(9.3, True), (5.2, True), (15.8, True), (0.0, False), (2.3, False), (20.0, False)]
)
def test_losses_are_judged_as_far_as_the_echoes_tell(percent: float, good: bool) -> None:
    measured = replace(MEASURED, loss_percent=percent, loss_sent=215)
    assert (judge_links(LOSSY, {"wlan0": measured}, TOLERANCE) == []) is good


def test_a_wrong_loss_is_named_with_what_chance_allows() -> None:
    measured = replace(MEASURED, loss_percent=0.0, loss_sent=215)
    assert judge_links(LOSSY, {"wlan0": measured}, TOLERANCE) == [
        "wlan0: loss 0 % of 215 echoes measured, 9.75 % asked there and back (3.26 to 18.1 % would be chance)"
    ]


def test_few_echoes_tell_little_and_none_nothing() -> None:
    for sent in (0, 20):
        assert judge_links(LOSSY, {"wlan0": replace(MEASURED, loss_percent=0.0, loss_sent=sent)}, TOLERANCE) == []


def test_losses_that_nobody_asked_for_are_for_the_emulator_to_tell() -> None:
    assert judge_links(ASKED, {"wlan0": replace(MEASURED, loss_percent=5.0, loss_sent=215)}, TOLERANCE) == []


def test_losses_in_bursts_are_fewer_witnesses() -> None:
    up = Direction(2020, 25.0, loss=GilbertElliott(p_percent=1.0, r_percent=9.0))
    bursts = {"wlan0": PathCondition(down=Direction(7040, 25.0), up=up)}
    assert bursts["wlan0"].round_trip_loss_percent == 10.0
    measured = replace(MEASURED, loss_percent=0.0, loss_sent=1015)
    independent = {"wlan0": PathCondition(down=Direction(7040, 25.0), up=replace(up, loss=10.0))}
    for percent, good in ((2.0, True), (24.0, True), (40.0, False)):
        assert (judge_links(bursts, {"wlan0": replace(measured, loss_percent=percent)}, TOLERANCE) == []) is good
        assert judge_links(independent, {"wlan0": replace(measured, loss_percent=percent)}, TOLERANCE)


def test_a_rate_behind_many_losses_cannot_be_told() -> None:
    requested = {"wlan0": PathCondition.of(7040, 2020, 50, loss_percent=30)}
    measured = replace(MEASURED, down_kbps=6000, loss_percent=51.0, loss_sent=215)
    assert judge_links(requested, {"wlan0": measured}, TOLERANCE) == []
    assert judge_links(LOSSY, {"wlan0": replace(measured, loss_percent=9.0)}, TOLERANCE)


def test_a_slow_link_takes_time_to_send_an_echo() -> None:
    requested = {"wlan0": PathCondition.of(300, 300, 40)}
    measured = replace(MEASURED, down_kbps=300, up_kbps=300)
    for rtt_ms, good in ((44.2, True), (48.2, False), (40.0, False)):
        assert (judge_links(requested, {"wlan0": replace(measured, rtt_ms_median=rtt_ms)}, TOLERANCE) == []) is good


def test_jitter_widens_what_the_round_trip_time_may_be() -> None:
    measured = replace(MEASURED, rtt_ms_median=57.0)
    (reason,) = judge_links({"wlan0": PathCondition.of(7040, 2020, 50, jitter_ms=1)}, {"wlan0": measured}, TOLERANCE)
    assert reason.endswith("(off by 14%, 10 % and 1.13 ms for the jitter allowed)")
    assert judge_links({"wlan0": PathCondition.of(7040, 2020, 50, jitter_ms=5)}, {"wlan0": measured}, TOLERANCE) == []


def test_packets_wait_for_the_opportunities_of_a_trace() -> None:
    path = PathCondition.of(7040, 2020, 50)
    requested = {"wlan0": replace(path, down=replace(path.down, rate_kbps=None, trace=Trace(Path("any.down"))))}
    assert judge_links(requested, {"wlan0": replace(MEASURED, rtt_ms_median=90.0, down_kbps=None)}, TOLERANCE) == []
    (reason,) = judge_links(requested, {"wlan0": replace(MEASURED, rtt_ms_median=30.0, down_kbps=None)}, TOLERANCE)
    assert reason.startswith("wlan0: RTT 30 ms measured")


def test_where_many_packets_skip_the_delay_the_median_is_not_the_delay() -> None:
    path = PathCondition.of(7040, 2020, 50)
    measured = replace(MEASURED, rtt_ms_median=30.0)
    for percent, judged in ((5.0, True), (40.0, False)):
        requested = {"wlan0": replace(path, down=replace(path.down, reorder_percent=percent))}
        assert bool(judge_links(requested, {"wlan0": measured}, TOLERANCE)) is judged


def test_only_losses_that_nobody_asked_for_disturb() -> None:
    counters = {"wlan0.up.dropped_loss": 7, "wlan0.down.dropped_queue": 3, "wlan0.up.packets_in": 100}
    assert judge_emulation(counters) == []
    (reason,) = judge_emulation({**counters, "rmnet0.down.kernel_dropped": 2})
    assert "2 packets" in reason
    assert "rmnet0.down.kernel_dropped" in reason


def test_an_emulator_that_is_often_late_is_flagged() -> None:
    rarely = {"wlan0.up.late_packets": 1, "wlan0.up.packets_out": 1000}
    assert judge_punctuality(rarely) == []
    (warning,) = judge_punctuality({**rarely, "wlan0.up.late_packets": 30})
    assert warning == "wlan0.up: 30 of 1000 packets left the link emulator late: the host was busy"
    (warning,) = judge_punctuality({**rarely, "wlan0.up.late_packets": 30, "wlan0.up.late_us": 66_000})
    assert "late, by 2.2 ms on average: the host was busy" in warning


def test_a_capture_that_dropped_packets_is_told() -> None:
    complete = CaptureResult("a.pcapng", "phone", "wlan0", packets=10, dropped=0, headers_only=True)
    assert judge_captures([complete]) == []
    assert judge_captures([complete, replace(complete, file="b.pcapng", dropped=3)]) == [
        "b.pcapng: 3 packets were dropped by the capture"
    ]
