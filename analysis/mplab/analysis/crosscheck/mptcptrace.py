"""Parse mptcptrace (B. Hesmans): ``stats_N.csv`` of each connection, and the list of subflows that it prints.

mptcptrace reads only Multipath TCP version 0 (RFC 6824) with data sequence numbers of 32 bits.
"""

import re
from collections.abc import Collection, Mapping

from mplab.analysis.crosscheck.model import ComparedField, Definition, Endpoint, FlowRecord, Sides, number

NAME = "mptcptrace"
INSTALL = "it has no package: build it from its source (https://bitbucket.org/bhesmans/mptcptrace) and put it into PATH"
ARGUMENTS = ("-s", "-S", "-w", "2")
READABLE_VERSION = 0
_CONNECTION = re.compile(r"MPTCP connection (\d+) with id (\d+)")
_SUBFLOW = re.compile(r"Subflow (\d+) .*?sport (\d+) dport (\d+) saddr (\S+) daddr (\S+)")
_COLUMNS = 5
WRAP = 1 << 32
BEYOND_DATA = 2
"""Number of data sequence numbers of a direction that carry no byte: the initial one, and DATA_FIN."""

Ends = tuple[Endpoint, Endpoint]


def parse(printed: str, stats: Mapping[int, str], initial: Collection[Ends] = ()) -> list[FlowRecord]:
    """Return the connections in mptcptrace's standard output, with the values in their ``stats_N.csv``.

    A connection gets the ends of its initial subflow: the one in ``initial``, or else the last one, since mptcptrace
    prints subflows newest first. mptcptrace prints no start time, so the start is 0.

    Args:
        printed: the standard output.
        stats: N (id of the connection) → text of ``stats_N.csv``.
        initial: ends of the initial subflows, from mptrace's records.
    """
    records = []
    for identity, subflows in _connections(printed).items():
        a, b = next((ends for ends in subflows if ends in initial), subflows[-1])
        records.append(FlowRecord(a, b, 0.0, _sides(stats.get(identity, "")), {"subflows": len(subflows)}))
    return records


def _connections(printed: str) -> dict[int, list[Ends]]:
    subflows_of: dict[int, list[Ends]] = {}
    current: list[Ends] = []
    for line in printed.splitlines():
        if connection := _CONNECTION.search(line):
            current = subflows_of.setdefault(int(connection[2]), [])
        elif subflow := _SUBFLOW.search(line):
            current.append(((subflow[4], int(subflow[2])), (subflow[5], int(subflow[3]))))
    return {identity: ends for identity, ends in subflows_of.items() if ends}


def _sides(text: str) -> dict[str, Sides]:
    """Return name → (value client to server, value server to client) from rows ``file;connection;name;c2s;s2c``."""
    sides: dict[str, Sides] = {}
    for line in text.splitlines():
        parts = line.split(";")
        if len(parts) == _COLUMNS:
            sides[parts[2]] = (number(parts[3]), number(parts[4]))
    return sides


SUBFLOWS = Definition(
    "mptcptrace-subflows",
    "mptcptrace counts a subflow from its MP_JOIN on, mptrace when its handshake came to its end.",
    lambda pair: pair.our("subflows_asked") == pair.their("subflows"),
)
LAST_ACK = Definition(
    "mptcptrace-last-acknowledgement",
    "seqAcked is the last data acknowledgement less the initial number: it counts the number before the first byte "
    "and DATA_FIN (up to 2 more), not what was never acknowledged, and wraps at 4 GiB.",
    lambda pair: pair.their("seqAcked") - pair.our("mptcp_bytes") % WRAP <= BEYOND_DATA,
)
SAME_START = Definition(
    "mptcptrace-whole-mappings",
    "mptcptrace counts a mapping as reinjected when another subflow carried one with the same first byte, with its "
    "whole length; mptrace counts the bytes that another subflow carried.",
    lambda pair: pair.our("mptcp_reinjected") > 0,
)

FIELDS = (
    ComparedField("subflows", "subflows", definitions=(SUBFLOWS,)),
    ComparedField("mptcp_bytes", "seqAcked", definitions=(LAST_ACK,)),
    ComparedField("mptcp_reinjected", "bytesReinjected", definitions=(SAME_START,)),
)
