"""Driver of ``sptcp-balanced``: single-path TCP whose connections alternate between the networks."""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.drivers.transport import Transport, TransportDriver
from mplab.drivers.transport.sptcp_balanced.balanced import BalancedTcp


class BalancedDriver(TransportDriver):
    """Driver of `BalancedTcp`."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """See `TransportDriver`."""
        return BalancedTcp(interfaces)


DRIVER = BalancedDriver("sptcp-balanced", "TCP, networks in turn", "#AA4499", "*")
