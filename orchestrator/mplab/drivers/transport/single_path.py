"""Single-path TCP: one plain TCP connection per application connection, bound to one interface."""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.base.paths import WLAN
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.transport.direct import at_origin
from mplab.drivers.transport.driver import TransportDriver, options_as
from mplab.drivers.transport.protocol import AgentSettings, Evidence, Transport
from mplab.format.agentlog import ActiveCheck
from mplab.userfiles.experiments.transport import ViaOptions


class SinglePathTcp(Transport):
    """`Transport` by plain TCP over one interface.

    Args:
        device: interface of the phone.
        address: IP address of the phone on this interface.
        direct: see `Transport`.
    """

    def __init__(self, device: str, address: str, *, direct: bool = False) -> None:
        self.direct = direct
        self._device = device
        self._address = address

    @property
    def expected_subflows(self) -> int:
        """Return 1: a plain TCP connection is its only subflow."""
        return 1

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Make the interface the phone's default route, for UDP; the agent binds its TCP sockets to it."""
        undo.register("phone: default route over WiFi", lambda: phone.prefer(WLAN))
        phone.prefer(self._device)

    def agent_settings(self) -> AgentSettings:
        """Return settings for plain TCP sockets bound to the interface."""
        return AgentSettings("tcp", self._device)

    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return reasons why the test connection was not plain TCP from this interface's address."""
        if active.get("mptcp"):
            return ["the test connection was Multipath TCP, single-path TCP was requested"]
        if active.get("local") != [self._address]:
            return [f"the test connection left from {active.get('local')}, not from {self._address} ({self._device})"]
        return []

    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why the cell did not run over plain TCP on this interface; [] if it did.

        The captures must show only plain TCP, and no bytes over another interface.
        """
        reasons = self.check_active(evidence.active)
        if not evidence.captured:
            return reasons
        if not evidence.subflows:
            reasons.append(f"no TCP connection was captured on {self._device}")
        other = sum(
            flow["payload_up"] + flow["payload_down"] for flow in evidence.subflows if flow["interface"] != self._device
        )
        if other:
            reasons.append(f"{other} bytes went over another interface than {self._device}")
        return reasons + self._prove_plain(evidence)

    def _prove_plain(self, evidence: Evidence) -> list[str]:
        """Return a reason if a captured connection used Multipath TCP, otherwise []."""
        if any(row["kind"] == "mptcp" and not row["fallback"] for row in evidence.connections):
            return ["Multipath TCP was negotiated, single-path TCP was requested"]
        return self._prove_plain_at_origin(evidence) if self.direct else []

    def _prove_plain_at_origin(self, evidence: Evidence) -> list[str]:
        """Return reasons why the origin's capture and counters do not show plain TCP from the phone; [] if they do."""
        reasons = at_origin(evidence)
        accepted = evidence.origin_counters.get("MPTcpExt.MPCapableSYNRX", 0)
        if accepted:
            reasons.append(
                f"the origin's kernel counted {accepted} requests for Multipath TCP, plain TCP was requested"
            )
        if any(row["kind"] == "mptcp" for row in evidence.origin_connections):
            reasons.append("the origin's capture has Multipath TCP, plain TCP was requested")
        return reasons


class SinglePathDriver(TransportDriver):
    """Driver that opens `SinglePathTcp` over the first interface of its `paths`."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return a `SinglePathTcp` for one phone; see `TransportDriver`."""
        device = self.paths[0]
        return SinglePathTcp(device, interfaces[device], direct=options_as(ViaOptions, options).via == "direct")
