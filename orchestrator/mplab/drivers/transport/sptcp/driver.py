"""Driver of ``sptcp``: TCP over the default route."""

from collections.abc import Mapping

from pydantic import BaseModel

from mplab.base.paths import WLAN
from mplab.drivers.phone.kernel import PhoneFacts
from mplab.drivers.transport import Transport, TransportDriver
from mplab.drivers.transport.sptcp.default_route import DefaultRouteTcp


class SptcpDriver(TransportDriver):
    """Driver of `DefaultRouteTcp`."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> Transport:
        """See `TransportDriver`."""
        return DefaultRouteTcp(interfaces)

    def note_on(self, phone: PhoneFacts) -> str:
        """Return no note: no socket is bound."""
        return ""


DRIVER = SptcpDriver("sptcp", "TCP over the default route", "#332288", "p", paths=(WLAN,))
