"""The transport ``small-packets``: TCP over WiFi, in packets of at most `mtu` bytes."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.paths import WLAN
from mplab.base.undo import UndoStack
from mplab.drivers.phone import Phone
from mplab.drivers.transport import TransportDriver
from mplab.drivers.transport.driver import options_as
from mplab.drivers.transport.single_path import SinglePathTcp

USUAL_MTU = 1500
"""MTU that the interfaces of phones usually have, bytes."""


class Options(BaseModel):
    """Options of the transport; an unknown key is an error, so that a misspelt option is noticed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mtu: int = Field(576, ge=576, le=USUAL_MTU, description="Largest packet, bytes.")


class SmallPackets(SinglePathTcp):
    """`Transport` by plain TCP over WiFi, with a smaller MTU at the interface.

    Args:
        options: options in the experiment file.
        address: the phone's address on WiFi.
    """

    def __init__(self, options: Options, address: str) -> None:
        super().__init__(WLAN, address)
        self._options = options

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Set the MTU of the WiFi interface until the phone is released; register the undo before the change."""
        super().setup(phone, undo)
        undo.register(f"phone: MTU of {WLAN}", lambda: phone.ip(_mtu(USUAL_MTU)))
        phone.ip(_mtu(self._options.mtu))


class SmallPacketsDriver(TransportDriver):
    """Driver that opens `SmallPackets`; the object ``DRIVER`` sets name, appearance in figures, and options."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> SmallPackets:
        """Return a `SmallPackets` for one phone; see `TransportDriver`."""
        return SmallPackets(options_as(Options, options), interfaces[WLAN])


def _mtu(size: int) -> str:
    return f"link set dev {WLAN} mtu {size}"


DRIVER = SmallPacketsDriver("small-packets", "TCP in small packets", "#3A7FD5", "v", Options, paths=(WLAN,))
