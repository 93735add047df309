"""The kernel's counters are read by name."""

from mplab.base.counters import difference, parse_interfaces, parse_netstat
from mplab.cell.instruments import traffic

NETSTAT = """\
TcpExt: SyncookiesSent TCPTimeouts
TcpExt: 0 7
MPTcpExt: MPCapableSYNTX MPJoinSynAckRx
MPTcpExt: 3 2
"""


def test_pairs_of_lines_become_names_and_values() -> None:
    assert parse_netstat(NETSTAT) == {
        "TcpExt.SyncookiesSent": 0,
        "TcpExt.TCPTimeouts": 7,
        "MPTcpExt.MPCapableSYNTX": 3,
        "MPTcpExt.MPJoinSynAckRx": 2,
    }


def test_only_what_changed_is_kept() -> None:
    assert difference({"a": 1, "b": 2}, {"a": 1, "b": 5, "c": 4}) == {"b": 3, "c": 4}


DEV = """\
Inter-|   Receive                                        |  Transmit
 face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed
    lo:    1200 12 0 0 0 0 0 0 1200 12 0 0 0 0 0 0
 wlan0:12345678 999 1 2 0 0 0 0 54321 777 0 3 0 0 0 0
"""


def test_interfaces_have_frames_and_bytes_of_both_ways() -> None:
    counters = parse_interfaces(DEV)
    assert len(counters) == 2 * 4
    assert (counters["wlan0.rx_bytes"], counters["wlan0.rx_packets"]) == (12345678, 999)
    assert (counters["wlan0.tx_bytes"], counters["wlan0.tx_packets"]) == (54321, 777)


def test_an_interface_whose_counters_the_phone_hides_has_no_traffic() -> None:
    before = parse_interfaces(DEV)
    after = {**before, "wlan0.rx_bytes": before["wlan0.rx_bytes"] + 500}
    assert traffic(before, after, ["wlan0", "rmnet0"]) == {
        "wlan0": {"bytes_up": 0, "bytes_down": 500, "packets_up": 0, "packets_down": 0}
    }
    assert traffic({}, {}, ["wlan0"]) == {}
