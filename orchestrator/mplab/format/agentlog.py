"""Input and output of ``mpflex agent`` and ``mpflex proxy``: session settings, log records, checks.

A log (``agent.jsonl``, ``proxy.jsonl``) has one JSON object a line; ``event`` names its kind. Only the keys that mplab
reads are declared; docs/mpflex.md lists all of them.
"""

from typing import Literal, NotRequired, TypedDict


class SessionSettings(TypedDict, total=False):
    """Value of ``session`` in the configurations of agent and proxy; the programs have defaults for missing keys."""

    scheduler: str
    reinjection: dict[str, bool]
    feeding: str
    send_buffer_bytes: int


class PathBytes(TypedDict):
    """Bytes of one application connection that one path of an MPFlex session carried."""

    interface: str
    bytes_out: int
    bytes_in: int
    copies_out: int


class ConnectionRecord(TypedDict):
    """One application connection, or a DNS connection of the agent itself (``process`` is ``mpflex``).

    The agent sends the data of an application connection over a carrying connection to the proxy. ``device``: interface
    to which the carrying connection was bound; "": it was not bound, or never opened. ``local``: local address and port
    of the carrying connection.
    """

    event: Literal["connection"]
    opened: float
    device: NotRequired[str]
    local: NotRequired[str]
    process: NotRequired[str]
    duration_s: float
    src: str
    bytes_up: int
    bytes_down: int
    congestion_control: NotRequired[str]
    paths: NotRequired[list[PathBytes]]
    rule: NotRequired[str]
    scheme: NotRequired[str]


class PathRecord(TypedDict):
    """Event of one path of an MPFlex session; ``t`` is Unix time, seconds."""

    event: Literal["path"]
    t: float
    what: str
    interface: str
    incarnation: int
    error: NotRequired[str]


class PolicyRecord(TypedDict):
    """Result of reading the agent's rule file. ``error``: why the agent does not use or cannot evaluate its rules."""

    event: Literal["policy"]
    t: float
    rules: int
    error: NotRequired[str]


class OtherRecord(TypedDict):
    """A log record of a kind whose content mplab does not use."""

    event: Literal["ready", "dns", "refused", "session", "notice", "udp", "status", "memory", "listener"]


LogRecord = ConnectionRecord | PathRecord | PolicyRecord | OtherRecord


class ActiveCheck(TypedDict, total=False):
    """Result of ``mpflex check``, or of the check of the direct route: one test connection or test session."""

    ok: bool
    error: str
    transport: str
    mptcp: bool
    subflows: int
    local: list[str]
    """Local address of each subflow."""
    paths: list[str]
    """Interfaces of a session's paths."""
    plain: bool
    via: str
    """``direct``: the test connection was one of an application, to the origin. Missing: to the proxy."""
    congestion_control: str
    origin_congestion_control: str
    """Of the origin's socket; only on the direct route."""
    receive_buffer_bytes: int
    """Largest receive buffer of a socket at the end of the check (SO_RCVBUF)."""


class SessionSummary(TypedDict, total=False):
    """Value of ``proof.session`` in ``cell.json``; empty without a session.

    ``paths``: interface → ``{bytes_up, bytes_down, copied_up, copied_down}``. ``bytes_*`` counts each application byte
    once, ``copied_*`` counts the bytes that another path carried before. ``events``: events of the paths.
    """

    paths: dict[str, dict[str, int]]
    events: list[dict[str, object]]
