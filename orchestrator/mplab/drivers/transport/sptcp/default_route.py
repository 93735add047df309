"""TCP over the default route, as a phone without Multipath TCP has it: WiFi when it is there, else cellular.

Nothing carries a connection over from one network to the other. One whose network is lost ends, at the phone at once,
and it is left to the app to open another (baerts2015 ch. 6). When WiFi returns new connections take it; those that
cellular carries stay there until they end.
"""

from collections.abc import Mapping

from mplab.base.outages import Disturbances
from mplab.base.paths import WLAN
from mplab.drivers.transport.protocol import AgentSettings, Evidence
from mplab.drivers.transport.single_path import SinglePathTcp
from mplab.format.captured import SubflowRow


class DefaultRouteTcp(SinglePathTcp):
    """`Transport` over WiFi when it is up, else over the other interfaces.

    Args:
        interfaces: of the phone (name → address).
    """

    def __init__(self, interfaces: Mapping[str, str]) -> None:
        super().__init__(WLAN, interfaces[WLAN])

    def agent_settings(self) -> AgentSettings:
        """Plain TCP that follows the routes."""
        return AgentSettings("tcp")

    def prove(self, evidence: Evidence) -> list[str]:
        """Every captured connection is plain TCP, and began over WiFi unless the interface was down at that moment."""
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
    """Whether the default route went over another interface than `device` when a connection began.

    A path whose radio is off is still the default route: that it carries nothing is for the connections to find out.
    """
    begin_s = float(flow["start_ns"]) / 1e9
    return story.rerouted_s <= begin_s or story.down(device, begin_s)
