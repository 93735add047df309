"""Each definition matches only its own kind of difference; the manual lists all definitions."""

from pathlib import Path

import pytest

from mplab.analysis.crosscheck import mptcptrace, tcptrace, tshark
from mplab.analysis.crosscheck.check import definitions
from mplab.analysis.crosscheck.model import Definition, FlowRecord, Pair, Sides, Value

MANUAL = Path(__file__).parents[4] / "docs" / "cross-check.md"
Numbers = dict[str, Value]


def pair(ours: Numbers, theirs: Numbers, other: Numbers | None = None) -> Pair:
    """Return both records of side a of a flow; `other` has the numbers of side b in both records."""

    def record(numbers: Numbers) -> FlowRecord:
        names = dict.fromkeys([*numbers, *(other or {})])
        sides: dict[str, Sides] = {name: (numbers.get(name), (other or {}).get(name)) for name in names}
        return FlowRecord(("a", 1), ("b", 2), 0.0, sides, {"duration_s": 0.1})

    return Pair(record(ours), record(theirs), 0)


@pytest.mark.parametrize(
    ("definition", "ours", "theirs", "fits"),
    [
        (tcptrace.PROBE, {"unique_bytes": 30}, {"unique_bytes_sent": 20, "zwnd_probe_bytes": 10}, True),
        (tcptrace.PROBE, {"unique_bytes": 30}, {"unique_bytes_sent": 20, "zwnd_probe_bytes": 11}, False),
        (tcptrace.SYN_FIN_AGAIN, {"retransmitted_segments": 4}, {"rexmt_data_pkts": 6, "SYNs": 2, "FINs": 2}, True),
        (tcptrace.SYN_FIN_AGAIN, {"retransmitted_segments": 4}, {"rexmt_data_pkts": 7, "SYNs": 2, "FINs": 2}, False),
        (tcptrace.SYN_FIN_AGAIN, {"retransmitted_segments": 4}, {"rexmt_data_pkts": 4, "SYNs": 1, "FINs": 1}, False),
        (tcptrace.OWIN, {"flight_max": 100}, {"max_owin": 102}, True),
        (tcptrace.OWIN, {"flight_max": 100}, {"max_owin": 99}, False),
        (tcptrace.OWIN_WRAPS, {"flight_max": 100}, {"max_owin": 2**64 - 500}, True),
        (tcptrace.OWIN_SEGMENT, {"flight_max": 100, "segment_max": 50}, {"max_owin": 151}, True),
        (tcptrace.OWIN_SEGMENT, {"flight_max": 100, "segment_max": 50}, {"max_owin": 201}, False),
        (tcptrace.WINDOW_ZERO, {"window_min": 0, "zero_windows": 1}, {"min_win_adv": 512}, True),
        (tcptrace.WINDOW_ZERO, {"window_min": 0, "zero_windows": 0}, {"min_win_adv": 512}, False),
        (tcptrace.RTT_SYN_FIN, {"rtt_samples": 5, "rtt_min_ms": 2, "rtt_max_ms": 9},
         {"RTT_samples": 7, "RTT_min": 1.0, "RTT_max": 9.0}, True),
        (tcptrace.RTT_SYN_FIN, {"rtt_samples": 5, "rtt_min_ms": 2, "rtt_max_ms": 9},
         {"RTT_samples": 7, "RTT_min": 3.0, "RTT_max": 9.0}, False),
        (tcptrace.RTT_SYN_FIN, {"rtt_samples": 5, "rtt_min_ms": 2}, {"RTT_samples": 8, "RTT_min": 1.0}, False),
        (tcptrace.RTT_FEWER, {"rtt_samples": 5}, {"RTT_samples": 3}, True),
        (tcptrace.RTT_FEWER, {"rtt_samples": 5}, {"RTT_samples": 7}, False),
        (tcptrace.DUPLICATE_ACKS, {"duplicate_acks": 3}, {"duplicate_acks_sent": 5}, True),
        (tcptrace.DUPLICATE_ACKS, {"duplicate_acks": 5}, {"duplicate_acks_sent": 3}, False),
        (tcptrace.IDLE, {"idle_max_ms": 4}, {"idletime_max": 324.4}, True),
        (tcptrace.IDLE, {"idle_max_ms": 4}, {"idletime_max": 60.0}, False),
        (tshark.DATA_FIN, {"mptcp_bytes": 100}, {"acked_bytes": 101}, True),
        (tshark.DATA_FIN, {"mptcp_bytes": 100}, {"acked_bytes": 102}, False),
        (tshark.NOT_ACKNOWLEDGED, {"mptcp_bytes": 100}, {"acked_bytes": 40}, True),
        (tshark.NOT_ACKNOWLEDGED, {"mptcp_bytes": 100}, {"acked_bytes": 140}, False),
        (tshark.ACK_RTT, {"rtt_min_ms": 5.0}, {"rtt_min_ms": 4.0}, True),
        (tshark.ACK_RTT, {"rtt_min_ms": 5.0}, {"rtt_min_ms": 6.0}, False),
        (tshark.RST_SACK, {"sacks": 10, "rsts": 1}, {"sacks": 11}, True),
        (tshark.RST_SACK, {"sacks": 10, "rsts": 0}, {"sacks": 11}, False),
        (mptcptrace.LAST_ACK, {"mptcp_bytes": 100}, {"seqAcked": 102}, True),
        (mptcptrace.LAST_ACK, {"mptcp_bytes": 100}, {"seqAcked": 103}, False),
        (mptcptrace.LAST_ACK, {"mptcp_bytes": 2**32 + 7}, {"seqAcked": 8}, True),
    ],
)  # fmt: skip
def test_a_definition_fits_its_difference(definition: Definition, ours: Numbers, theirs: Numbers, fits: bool) -> None:
    assert definition.fits(pair(ours, theirs)) is fits


def test_a_scale_is_shown_by_tcptrace_when_both_sides_have_one() -> None:
    ours: Numbers = {"window_scale": 9}
    assert tcptrace.SCALE.fits(pair(ours, {"adv_wind_scale": 0}, {"window_scale": None}))
    assert not tcptrace.SCALE.fits(pair(ours, {"adv_wind_scale": 0}, {"window_scale": 7}))


def test_every_definition_is_in_the_manual() -> None:
    manual = MANUAL.read_text(encoding="utf-8")
    for group in definitions().values():
        for definition in group:
            assert f"| `{definition.name}` | {definition.text} |" in manual
