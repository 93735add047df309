"""A cell is what was asked, or its reasons say what was not."""

from dataclasses import replace

from orchestrator.capture import CaptureResult
from orchestrator.shaper import PathMeasurement
from orchestrator.spec.experiment import Tolerance
from orchestrator.spec.link import PathCondition
from orchestrator.verdict import judge_captures, judge_emulation, judge_links, judge_punctuality

ASKED = {"wlan0": PathCondition(down_kbps=7040, up_kbps=2020, rtt_ms=50)}
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
    asked = {"wlan0": PathCondition(down_kbps=None, up_kbps=None, rtt_ms=50)}
    assert judge_links(asked, {"wlan0": MEASURED}, TOLERANCE) == []


def test_only_losses_that_nobody_asked_for_disturb() -> None:
    asked = {"wlan0.up.dropped_loss": 7, "wlan0.down.dropped_queue": 3, "wlan0.up.packets_in": 100}
    assert judge_emulation(asked) == []
    (reason,) = judge_emulation({**asked, "rmnet0.down.kernel_dropped": 2})
    assert "2 packets" in reason
    assert "rmnet0.down.kernel_dropped" in reason


def test_an_emulator_that_is_often_late_is_flagged() -> None:
    rarely = {"wlan0.up.late_packets": 1, "wlan0.up.packets_out": 1000}
    assert judge_punctuality(rarely) == []
    (warning,) = judge_punctuality({**rarely, "wlan0.up.late_packets": 30})
    assert warning.startswith("wlan0.up: 30 of 1000 packets")


def test_a_capture_that_dropped_packets_is_told() -> None:
    whole = CaptureResult("a.pcapng", "phone", "wlan0", packets=10, dropped=0, headers_only=True)
    assert judge_captures([whole]) == []
    assert judge_captures([whole, replace(whole, file="b.pcapng", dropped=3)]) == [
        "b.pcapng: 3 packets were dropped by the capture"
    ]
