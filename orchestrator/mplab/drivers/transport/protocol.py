"""`Transport`: how the phone's TCP travels to the proxy, and how that is proved. Every driver opens one."""

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
"""How the kernel's counters of Multipath TCP begin."""


@dataclass(frozen=True)
class AgentSettings:
    """What a transport asks of ``mpflex agent`` on the phone, and of ``mpflex proxy``.

    Attributes:
        transport: what the agent opens to the proxy: plain TCP, kernel MPTCP, or a session.
        device: interface to bind to, or "" to follow the routes.
        devices: of plain TCP, instead of `device`: interfaces that take turns, a connection each.
        listener: of the proxy, that the agent connects to.
        paths: of a session: its interfaces, in the order of the paths' numbers.
        plain: of a session: its paths are not private.
        policy: content of the rule file that decides over connections; None: none.
        session: ``session`` in the configurations of agent and proxy.
        datagrams: the agent carries datagrams that applications give it.
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
        """Where on the phone apps hand over datagrams (SOCKS5, UDP ASSOCIATE), or "": they go past the agent."""
        return f"127.0.0.1:{SOCKS_PORT}" if self.datagrams else ""


@dataclass(frozen=True)
class Evidence:
    """How the bytes of a cell really travelled, as far as it was recorded.

    Attributes:
        active: result of ``mpflex check`` before the cell.
        phone_counters: kernel counters of the phone that changed during the cell.
        connections, subflows: rows from the phone's captures; empty when nothing was captured.
        captured: False when the experiment requests no captures.
        log: records of the agent's log.
        lossy: interfaces whose requested link condition loses packets.
        disturbances: what the experiment did to the paths meanwhile.
    """

    active: ActiveCheck
    phone_counters: Mapping[str, int]
    connections: Sequence[ConnectionRow] = ()
    subflows: Sequence[SubflowRow] = ()
    captured: bool = True
    log: Sequence[LogRecord] = ()
    lossy: Collection[str] = ()
    disturbances: Disturbances = field(default_factory=Disturbances)


class Transport(ABC):
    """One way to carry the phone's connections, with its options applied."""

    @property
    @abstractmethod
    def expected_subflows(self) -> int:
        """Subflows, or paths, that a long-lived connection has."""

    @abstractmethod
    def agent_settings(self) -> AgentSettings:
        """Return how the agent connects to the proxy."""

    @abstractmethod
    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return why the test connection before the cell is not this transport; empty when it is."""

    @abstractmethod
    def prove(self, evidence: Evidence) -> list[str]:
        """Return why the cell did not run over this transport; empty when it did."""

    def setup(self, phone: Phone, undo: UndoStack) -> None:  # noqa: B027 - most transports change nothing
        """Prepare the phone's routes and kernel; register every change's undo before the change. Default: nothing."""

    def missing_on_phone(self, read_kernel: Callable[[], KernelMptcp]) -> str:
        """Return what a rooted phone lacks for it, or "".

        Args:
            read_kernel: reads the phone's kernel; call it only if the kernel matters.
        """
        return ""

    def count(self, changed: Mapping[str, int]) -> dict[str, int]:
        """Return the counters that ``cell.json`` keeps as proof: by default those of the kernel's Multipath TCP.

        Args:
            changed: how much each of the phone's kernel counters has grown during the cell.
        """
        return {name: value for name, value in changed.items() if name.startswith(_KERNEL_MPTCP)}

    def summarise(self, agent: Sequence[LogRecord], proxy: Sequence[LogRecord]) -> SessionSummary:
        """Return what the paths of a session carried, for ``proof.session`` of ``cell.json``; {} without sessions.

        Args:
            agent: records of the agent's log.
            proxy: records of the proxy's log, of the same cell.
        """
        return {}
