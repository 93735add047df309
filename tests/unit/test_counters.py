"""The kernel's counters are read by name."""

from orchestrator.phone.counters import difference, parse_netstat

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
