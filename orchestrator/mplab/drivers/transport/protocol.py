"""`Transport`, the base class of transports: carries the phone's TCP to the proxy, and proves later that it did."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mplab.base.endpoints import Listener
from mplab.base.outages import Disturbances
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.phone.kernel import KernelMptcp
from mplab.drivers.transport.redirect import SOCKS_PORT
from mplab.format.agentlog import ActiveCheck, LogRecord, SessionSettings, SessionSummary
from mplab.format.captured import ConnectionRow, SubflowRow

_KERNEL_MPTCP = "MPTcpExt."
"""Prefix of the kernel's Multipath TCP counters."""


@dataclass(frozen=True)
class AgentSettings:
    """Settings of a transport for ``mpflex agent`` on the phone, and for ``mpflex proxy``.

    Attributes:
        transport: kind of the agent's connections to the proxy: plain TCP, kernel MPTCP, or an MPFlex session.
        device: interface to which the agent binds its sockets; "": the agent follows the routes.
        devices: interfaces that new connections use in turn, for plain TCP; replaces `device`.
        listener: listener of the proxy to which the agent connects.
        paths: interfaces of a session; the index of an interface is the number of its path.
        plain: the paths of a session are not encrypted.
        policy: content of the rule file for connections; None: no policy.
        session: value of the key ``session`` in the configurations of agent and proxy.
        datagrams: the agent carries datagrams of applications.
    """

    transport: Literal["tcp", "mptcp", "mpflex"]
    device: str = ""
    listener: Listener = "tcp"
    paths: tuple[str, ...] = ()
    plain: bool = False
    policy: str | None = None
    session: SessionSettings = field(default_factory=SessionSettings)
    datagrams: bool = False
    devices: tuple[str, ...] = ()

    @property
    def socks(self) -> str:
        """Address on the phone that accepts apps' datagrams (SOCKS5, UDP ASSOCIATE); "": they bypass the agent."""
        return f"127.0.0.1:{SOCKS_PORT}" if self.datagrams else ""


@dataclass(frozen=True)
class Evidence:
    """Records of a cell that show over which transport and paths its bytes travelled.

    Attributes:
        active: result of ``mpflex check`` before the cell.
        phone_counters: kernel counter of the phone → its increase during the cell.
        connections, subflows: rows from the phone's captures; empty without captures.
        captured: True unless the experiment requests no captures.
        log: records of the agent's log.
        lossy: interfaces whose requested link condition loses packets.
        rtts_s: interface → round-trip time of its requested link condition before changes, seconds.
        disturbances: changes of the paths that the experiment made during the cell.
        origin_counters: kernel counter of the origin → its increase during the cell; only on the direct route.
        origin_connections: rows from the origin's capture; only on the direct route.
    """

    active: ActiveCheck
    phone_counters: Mapping[str, int]
    connections: Sequence[ConnectionRow] = ()
    subflows: Sequence[SubflowRow] = ()
    captured: bool = True
    log: Sequence[LogRecord] = ()
    lossy: Collection[str] = ()
    rtts_s: Mapping[str, float] = field(default_factory=dict)
    disturbances: Disturbances = field(default_factory=Disturbances)
    origin_counters: Mapping[str, int] = field(default_factory=dict)
    origin_connections: Sequence[ConnectionRow] = ()


class Transport(ABC):
    """Carries one phone's connections to the proxy, with the options that the experiment gives to the transport.

    Attributes:
        direct: True: the applications' sockets use the transport to the origin, without agent and proxy.
        stripped: interfaces of the phone behind whose paths a middlebox removes the options of Multipath TCP.
    """

    direct: bool = False
    stripped: Collection[str] = ()

    @property
    @abstractmethod
    def expected_subflows(self) -> int:
        """Number of subflows (or paths of a session) that a long-lived connection must have."""

    @abstractmethod
    def agent_settings(self) -> AgentSettings:
        """Return the settings with which the agent connects to the proxy."""

    @abstractmethod
    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return reasons why the test connection before the cell did not use this transport; [] when it did."""

    @abstractmethod
    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why the cell did not run over this transport; [] when it did."""

    def setup(self, phone: Phone, undo: UndoStack) -> None:  # noqa: B027 - most transports change nothing
        """Prepare the phone's routes and kernel; register each undo before its change is made. Default: no changes."""

    def missing_on_phone(self, read_kernel: Callable[[], KernelMptcp]) -> str:
        """Return why a rooted phone cannot use this transport, or "".

        Args:
            read_kernel: function that reads the properties of the phone's kernel; called only if the kernel matters.
        """
        return ""

    def count(self, changed: Mapping[str, int]) -> dict[str, int]:
        """Return the counters that ``cell.json`` keeps as proof: by default those of the kernel's Multipath TCP.

        Args:
            changed: increase of each of the phone's kernel counters during the cell.
        """
        return {name: value for name, value in changed.items() if name.startswith(_KERNEL_MPTCP)}

    def summarise(self, agent: Sequence[LogRecord], proxy: Sequence[LogRecord]) -> SessionSummary:
        """Return the bytes per path of a session, for ``proof.session`` of ``cell.json``; {} without sessions.

        Args:
            agent: records of the agent's log.
            proxy: records of the proxy's log of the same cell.
        """
        return {}
