"""Rows of mptrace's tables ``connections`` and ``subflows``: the columns that the checks of a cell read.

docs/trace-tables.md describes all columns.
"""

from typing import Final, Literal, TypedDict

ORIGIN_CAPTURE: Final = "origin.pcapng"
"""Capture of the far end on the direct route, in the folder of a cell; the proxy's capture is the one otherwise."""


class ConnectionRow(TypedDict):
    """One TCP or Multipath TCP connection. Byte counts are payload; each byte is counted once."""

    connection_id: int
    kind: Literal["tcp", "mptcp"]
    start_ns: int
    duration_s: float
    syn_seen: bool
    fallback: bool
    subflows: int
    bytes_up: int
    bytes_down: int


class SubflowRow(TypedDict):
    """One subflow (TCP 4-tuple) of a connection. ``unique_*``: bytes without retransmissions and reinjections."""

    connection_id: int
    role: Literal["initial", "additional"]
    interface: str
    start_ns: int
    duration_s: float
    established: bool
    reset_by: Literal["", "client", "server"]
    payload_up: int
    payload_down: int
    unique_up: int
    unique_down: int


class CapturedTables(TypedDict):
    """The tables ``connections`` and ``subflows`` of a set of captures."""

    connections: list[ConnectionRow]
    subflows: list[SubflowRow]
