"""Parsing of the tools' stored outputs."""

from pathlib import Path

import pytest

from mplab.analysis.crosscheck import mptcptrace, tcptrace, tshark

STORED = Path(__file__).parent / "stored"
WLAN, RMNET = (("10.1.0.1", 39846), ("10.1.0.2", 4000)), (("10.2.0.1", 50455), ("10.1.0.2", 4000))


def test_tcptrace_has_a_record_per_connection() -> None:
    first, second = tcptrace.parse((STORED / "tcptrace-two-paths.csv").read_text())
    assert ((first.a, first.b), (second.a, second.b)) == (WLAN, RMNET)
    assert first.start_s == pytest.approx(1795253566.905299)
    assert first.sides["total_packets"] == (118, 143)
    assert first.sides["actual_data_bytes"] == (174236, 251380)
    assert first.sides["rexmt_data_bytes"] == (0, 1940)
    assert first.sides["zwnd_probe_bytes"] == (0, 10240)
    assert (first.sides["SYNs"], first.sides["FINs"]) == ((1, 1), (1, 1))
    assert first.sides["RTT_max"] == (4.4, 35.5)
    assert first.sides["duplicate_acks_sent"] == first.sides["duplicate_acks"][::-1]


@pytest.mark.parametrize("text", ["", "0 packets seen, 0 TCP packets traced\n"])
def test_tcptrace_without_connections_has_no_record(text: str) -> None:
    assert tcptrace.parse(text) == []


TIMES = [("17.500000", 17.5), ("1795253737.32878 ", 1795253737.032878), ("12.0", 12.0), ("3.1", 3.000001)]


@pytest.mark.parametrize(("text", "seconds"), TIMES)
def test_tcptrace_leaves_out_the_zeros_behind_the_point(text: str, seconds: float) -> None:
    assert tcptrace.seconds(text) == pytest.approx(seconds, abs=1e-9)


def test_tshark_counts_per_stream_and_side() -> None:
    subflows, _ = tshark.parse((STORED / "tshark-two-paths.tsv").read_text())
    first, second = subflows
    assert ((first.a, first.b), (second.a, second.b)) == (WLAN, RMNET)
    assert first.sides["syns"] == second.sides["syns"] == (1, 1)
    assert first.sides["mss"] == (1460, 1460)
    assert first.sides["window_scale"] == (10, 10)
    assert first.sides["fins"] == (1, 1)
    assert first.whole["initial_rtt_ms"] == pytest.approx(0.0309, abs=1e-4)


def test_tshark_knows_the_connection_of_both_subflows() -> None:
    _, (connection,) = tshark.parse((STORED / "tshark-two-paths.tsv").read_text())
    assert (connection.a, connection.b) == WLAN
    assert (connection.whole["subflows"], connection.whole["version"]) == (2, 1)
    assert (connection.whole["token"], connection.whole["token_client"]) == ("86be3397", "3af3086e")
    # DATA_FIN counts as one byte in addition to the payload of 300033 bytes up and 700035 down.
    assert connection.sides["acked_bytes"] == (300034, 700036)


@pytest.mark.parametrize("text", ["", "\t".join(tshark.COLUMNS) + "\n"])
def test_tshark_without_packets_has_no_record(text: str) -> None:
    assert tshark.parse(text) == ([], [])


def test_tshark_is_not_led_by_a_warning_before_the_header() -> None:
    text = (STORED / "tshark-two-paths.tsv").read_text()
    assert tshark.parse("Running as user root.\n" + text) == tshark.parse(text)


PRINTED = """MPTCP connection 0 with id 3
\tSubflow 0 with wscale : 7 8 IPv4 sport 50455 dport 4000 saddr 10.2.0.1 daddr 10.1.0.2
\tSubflow 1 with wscale : 7 8 IPv4 sport 39846 dport 4000 saddr 10.1.0.1 daddr 10.1.0.2
MPTCP connection 1 with id 4
"""
STATS = "trace.pcap;3;sfCount;2;2\ntrace.pcap;3;seqAcked;300034;700036\ntrace.pcap;3;bytesReinjected;0;16232\nbroken\n"


def test_mptcptrace_is_named_by_its_last_subflow() -> None:
    (record,) = mptcptrace.parse(PRINTED, {3: STATS})
    assert (record.a, record.b) == WLAN
    assert record.whole["subflows"] == 2
    assert record.sides["seqAcked"] == (300034, 700036)
    assert record.sides["bytesReinjected"] == (0, 16232)


def test_mptcptrace_is_named_by_the_initial_subflow_where_that_is_known() -> None:
    (record,) = mptcptrace.parse(PRINTED, {}, initial={RMNET})
    assert (record.a, record.b) == RMNET


def test_mptcptrace_without_connections_has_no_record() -> None:
    assert mptcptrace.parse("", {}) == []
