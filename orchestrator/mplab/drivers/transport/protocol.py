"""The ``Transport`` protocol: how the phone's TCP travels to the proxy, and how that is proved."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mplab.base.outages import Disturbances
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.transport.redirect import SOCKS_PORT


@dataclass(frozen=True)
class AgentSettings:
    """What the agent on the phone is told, and the proxy of its sessions."""

    transport: Literal["tcp", "mptcp", "mpflex"]
    device: str
    """Interface to bind to, or "" to follow the routes."""
    paths: tuple[str, ...] = ()
    """Interfaces of the session, in the order of the paths' numbers; with ``mpflex`` alone."""
    plain: bool = False
    """The paths are not private."""
    policy: str | None = None
    """The rule file that decides over connections; with ``mpflex`` alone."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """``session`` in the configurations of agent and proxy."""

    @property
    def socks(self) -> str:
        """Where on the phone apps hand over datagrams (SOCKS5, UDP ASSOCIATE), or "": they go past the agent."""
        return f"127.0.0.1:{SOCKS_PORT}" if self.transport == "mpflex" else ""


@dataclass(frozen=True)
class Evidence:
    """What is known after a cell about how its bytes really travelled."""

    active: Mapping[str, Any]
    """Result of ``mpflex check`` before the cell: ``mptcp``, ``subflows``, ``local``, ``congestion_control``; of a
    session ``paths``, too."""
    phone_counters: Mapping[str, int]
    """Kernel counters of the phone that changed during the cell."""
    connections: Sequence[Mapping[str, Any]] = field(default=())
    """Rows of mptrace's ``connections`` table, from the phone's captures (empty when nothing was captured)."""
    subflows: Sequence[Mapping[str, Any]] = field(default=())
    """Rows of mptrace's ``subflows`` table."""
    captured: bool = True
    """False when the experiment asked for no captures."""
    log: Sequence[Mapping[str, Any]] = field(default=())
    """Records of the agent's log."""
    lossy: Collection[str] = field(default=())
    """Interfaces whose link loses packets because that was asked."""
    disturbances: Disturbances = field(default_factory=Disturbances)
    """What the experiment did to the paths meanwhile."""


class Transport(Protocol):
    """One way to carry the phone's connections, with its options applied."""

    @property
    def expected_subflows(self) -> int:
        """Subflows that a long-lived connection has."""

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Prepare the phone's routes and kernel; every change's undo is registered before it is made."""

    def agent_settings(self) -> AgentSettings:
        """How the agent connects to the proxy."""

    def check_active(self, active: Mapping[str, Any]) -> list[str]:
        """Why the test connection before the cell is not this transport; empty when it is."""

    def prove(self, evidence: Evidence) -> list[str]:
        """Why the cell did not run over this transport; empty when it did."""
