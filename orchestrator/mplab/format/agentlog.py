"""What the programs ``mpflex agent`` and ``mpflex proxy`` read and write: session settings, log records, checks.

A log (``agent.jsonl``, ``proxy.jsonl``) has one JSON object a line; ``event`` names its kind. Only the keys that mplab
reads are declared; docs/mpflex.md has all of them.
"""

from typing import Literal, NotRequired, TypedDict


class SessionSettings(TypedDict, total=False):
    """``session`` in the configurations of agent and proxy; the programs have defaults for what is left out."""

    scheduler: str
    reinjection: dict[str, bool]
    feeding: str
    send_buffer_bytes: int


class PathBytes(TypedDict):
    """What one path of a session carried of a stream, bytes."""

    interface: str
    bytes_out: int
    bytes_in: int
    copies_out: int


class ConnectionRecord(TypedDict):
    """One application connection, or one of the agent's own for lookups: its ``process`` is ``mpflex``.

    ``device``: the interface that its carrying connection was bound to; "": none, or it was never opened.
    ``local``: the address and port of the carrying connection.
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
    """Something that happened to a path of a session; ``t`` is Unix time, s."""

    event: Literal["path"]
    t: float
    what: str
    interface: str
    incarnation: int
    error: NotRequired[str]


class PolicyRecord(TypedDict):
    """The agent has read its rule file."""

    event: Literal["policy"]
    t: float
    rules: int
    error: NotRequired[str]


class OtherRecord(TypedDict):
    """A record of a kind that mplab keeps and does not read."""

    event: Literal["ready", "dns", "refused", "session", "notice", "udp", "status", "memory", "listener"]


LogRecord = ConnectionRecord | PathRecord | PolicyRecord | OtherRecord


class ActiveCheck(TypedDict, total=False):
    """Result of ``mpflex check``: one test connection, or session."""

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
    congestion_control: str


class SessionSummary(TypedDict, total=False):
    """``proof.session`` of ``cell.json``; empty without a session.

    ``paths``: interface → ``{bytes_up, bytes_down, copied_up, copied_down}``: bytes of streams, each once, and of
    copies. ``events``: what happened to the paths.
    """

    paths: dict[str, dict[str, int]]
    events: list[dict[str, object]]
