"""Driver of ``sptcp-balanced``: each new connection uses the next network, as on a router with two uplinks.

A connection stays on its network. If the network is lost, the connection ends immediately on the phone, as with
`sptcp`. New connections skip the network until it is back.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pydantic import BaseModel

from mplab.base.outages import Disturbances
from mplab.base.paths import INTERFACES
from mplab.drivers.transport import AgentSettings, Evidence, Transport, TransportDriver
from mplab.format.agentlog import ActiveCheck, ConnectionRecord
from mplab.userfiles.experiments.transport import ViaOptions

_LOOKUPS = "mpflex"
"""Process name in the log for the agent's own DNS lookups; they are not counted, because they take turns separately."""


class BalancedTcp(Transport):
    """`Transport` by plain TCP: new connections use the interfaces of a phone in turn.

    Args:
        interfaces: interface of the phone → its address.
    """

    def __init__(self, interfaces: Mapping[str, str]) -> None:
        self._interfaces = {device: interfaces[device] for device in INTERFACES.values() if device in interfaces}

    @property
    def expected_subflows(self) -> int:
        """Return 1: a plain TCP connection is its only subflow."""
        return 1

    def agent_settings(self) -> AgentSettings:
        """Return settings for plain TCP sockets that are bound to the interfaces in turn."""
        return AgentSettings("tcp", devices=tuple(self._interfaces))

    def check_active(self, active: ActiveCheck) -> list[str]:
        """Return reasons why the test connections were not plain TCP, one over each interface; [] if they were."""
        if active.get("mptcp"):
            return ["the test connection was Multipath TCP, single-path TCP was requested"]
        local = active.get("local", [])
        return [
            f"no test connection left from {address} ({device}), only from {', '.join(local) or 'nowhere'}"
            for device, address in self._interfaces.items()
            if address not in local
        ]

    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why the cell's connections did not use the interfaces in turn; [] if they did.

        Each connection must leave from its interface's address, the interfaces must take turns, and the captures must
        agree with the agent's log.
        """
        reasons = self.check_active(evidence.active)
        every = [record for record in evidence.log if record["event"] == "connection"]
        opened = [record for record in every if record.get("device")]
        strange = sum(not self._from_its_interface(record, evidence.disturbances) for record in opened)
        if strange:
            reasons.append(f"{strange} of {len(opened)} connections did not leave from the address of their interface")
        if evidence.captured:
            reasons += self._prove_captured(evidence, Counter(record.get("device") for record in opened))
        return reasons + self._prove_turns(evidence, [record for record in every if record.get("process") != _LOOKUPS])

    def _from_its_interface(self, record: ConnectionRecord, story: Disturbances) -> bool:
        device = record.get("device", "")
        if any(gone.device == device and gone.begin_s <= record["opened"] for gone in story.absences):
            return True  # the interface may return from an absence with another address
        return device in self._interfaces and record.get("local", "").rpartition(":")[0] == self._interfaces[device]

    def _prove_turns(self, evidence: Evidence, records: Sequence[ConnectionRecord]) -> list[str]:
        """Return a reason if the numbers of connections show that the interfaces did not take turns, otherwise [].

        A connection that was not opened, or that an outage may have moved to another interface, used a turn of an
        unknown interface. Each such connection allows the counts to differ by one more.
        """
        story = evidence.disturbances
        counted: Counter[str] = Counter(dict.fromkeys(self._interfaces, 0))
        excused = 0
        for record in records:
            device = record.get("device")
            if not device or any(story.out(other, record["opened"]) for other in self._interfaces):
                excused += 1
            else:
                counted[device] += 1
        if not sum(counted.values()):
            return [] if excused else ["the agent's log has no connection of an application"]
        if max(counted.values()) - min(counted.values()) <= 1 + excused:
            return []
        counts = ", ".join(f"{device} {count}" for device, count in counted.items())
        return [f"the interfaces did not take turns: connections over {counts}"]

    def _prove_captured(self, evidence: Evidence, logged: Mapping[str | None, int]) -> list[str]:
        reasons = []
        if any(row["kind"] == "mptcp" and not row["fallback"] for row in evidence.connections):
            reasons.append("Multipath TCP was negotiated, single-path TCP was requested")
        captured = Counter(flow["interface"] for flow in evidence.subflows)
        for device in self._interfaces:
            if captured[device] < logged.get(device, 0):
                reasons.append(
                    f"the agent's log has {logged[device]} connections over {device}, {captured[device]} were captured"
                )
        return reasons


class BalancedOptions(ViaOptions):
    """Options of ``sptcp-balanced`` in an experiment file."""

    not_direct: ClassVar[str] = "the agent assigns each connection to the next network, and applications cannot"


class BalancedDriver(TransportDriver):
    """Driver that opens `BalancedTcp`."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return a `BalancedTcp` for one phone; see `TransportDriver`."""
        return BalancedTcp(interfaces)


DRIVER = BalancedDriver("sptcp-balanced", "TCP, networks in turn", "#AA4499", "*", BalancedOptions)
