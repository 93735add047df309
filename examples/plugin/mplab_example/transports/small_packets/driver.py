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
    """Options of the transport; strict, so that a misspelt one is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mtu: int = Field(576, ge=576, le=USUAL_MTU, description="Largest packet, bytes.")


class SmallPackets(SinglePathTcp):
    """`Transport`: single-path TCP, and its check that no other path was used, over an interface with a smaller MTU.

    Args:
        options: see `Options`.
        address: the phone's address on WiFi.
    """

    def __init__(self, options: Options, address: str) -> None:
        super().__init__(WLAN, address)
        self._options = options

    def setup(self, phone: Phone, undo: UndoStack) -> None:
        """Register the undo before changing the phone, so that the change is undone whatever happens."""
        super().setup(phone, undo)
        undo.register(f"phone: MTU of {WLAN}", lambda: phone.ip(_mtu(USUAL_MTU)))
        phone.ip(_mtu(self._options.mtu))


class SmallPacketsDriver(TransportDriver):
    """Driver of the transport; `DRIVER` below gives it its name, its look in figures and its options."""

    def open(
        self, options: BaseModel | None, interfaces: Mapping[str, str], files: Mapping[str, bytes] | None = None
    ) -> SmallPackets:
        """See `TransportDriver`."""
        return SmallPackets(options_as(Options, options), interfaces[WLAN])


def _mtu(size: int) -> str:
    return f"link set dev {WLAN} mtu {size}"


DRIVER = SmallPacketsDriver("small-packets", "TCP in small packets", "#56B4E9", "v", Options, paths=(WLAN,))
