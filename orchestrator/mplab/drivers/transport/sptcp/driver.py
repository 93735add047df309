"""Driver of ``sptcp``: TCP over the default route, like a phone without Multipath TCP.

The default route is WiFi if available, otherwise cellular. Connections do not move between networks. When a network is
lost, its connections end immediately on the phone, and the app must open new ones (baerts2015 ch. 6). When WiFi
returns, new connections use it, and existing connections stay on cellular until they end.
"""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.base.outages import Disturbances
from mplab.base.paths import WLAN
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.transport import AgentSettings, Evidence, Transport, TransportDriver, options_as
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.format.captured import SubflowRow
from mplab.format.palette import GREY
from mplab.userfiles.experiments.transport import ViaOptions


class DefaultRouteTcp(SinglePathTcp):
    """`Transport` by plain TCP: over WiFi while WiFi is up, otherwise over the cellular interface.

    Args:
        interfaces: interface of the phone → its address.
        direct: see `Transport`.
    """

    def __init__(self, interfaces: Mapping[str, str], *, direct: bool = False) -> None:
        super().__init__(WLAN, interfaces[WLAN], direct=direct)

    def agent_settings(self) -> AgentSettings:
        """Return settings for plain TCP sockets that follow the phone's routes."""
        return AgentSettings("tcp")

    def prove(self, evidence: Evidence) -> list[str]:
        """Return reasons why the cell did not run over plain TCP on the default route; [] if it did.

        Every captured connection must be plain TCP, and must have started over WiFi unless WiFi was down at that time.
        """
        reasons = self.check_active(evidence.active)
        if not evidence.captured:
            return reasons
        if not evidence.subflows:
            reasons.append("no TCP connection was captured")
        story = evidence.disturbances
        elsewhere = [
            flow
            for flow in evidence.subflows
            if flow["interface"] != self._device and not _leads_elsewhere(story, self._device, flow)
        ]
        if elsewhere:
            reasons.append(
                f"{len(elsewhere)} connections began on another interface than {self._device} while it was up"
            )
        return reasons + self._prove_plain(evidence)


def _leads_elsewhere(story: Disturbances, device: str, flow: SubflowRow) -> bool:
    """Return True when the default route used another interface than `device` at the start of a connection.

    An interface whose radio is off remains the default route until the interface itself goes down.
    """
    begin_s = float(flow["start_ns"]) / 1e9
    return story.rerouted_s <= begin_s or story.down(device, begin_s)


class SptcpDriver(TransportDriver):
    """Driver that opens `DefaultRouteTcp`, the transport over the default route."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """Return a `DefaultRouteTcp` for one phone; see `TransportDriver`."""
        return DefaultRouteTcp(interfaces, direct=options_as(ViaOptions, options).via == "direct")

    def note_on(self, phone: PhoneFacts) -> str:
        """Return "": the agent binds no socket to an interface, so the base class's requirement does not apply."""
        return ""


DRIVER = SptcpDriver("sptcp", "TCP over the default route", GREY, "p", ViaOptions, paths=(WLAN,))
