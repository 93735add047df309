"""Driver ``linkem``: the link emulator of the virtual lab."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.base.programs import LINKEM
from mplab.drivers.shaper.driver import EmulatorDriver
from mplab.format.abilities import Abilities

if TYPE_CHECKING:
    from mplab.base.nodes import Node
    from mplab.drivers.phone import Phone
    from mplab.drivers.shaper.linkem.emulator import LinkemShaper


class Linkem(EmulatorDriver):
    """`EmulatorDriver` for ``linkem``."""

    name = "linkem"
    title = "the link emulator of the virtual lab"
    method = "linkem"
    abilities = Abilities(title, disciplines=("drop-tail", "codel", "fq_codel"), rate_kbps=500_000.0)
    programs = (LINKEM,)

    def open(
        self,
        *,
        air: "Node",
        phone: "Phone",
        proxy: "Node",
        probe_server: str,
        directory: Path,
        wan_delay_ms: Mapping[str, float],
    ) -> "LinkemShaper":
        """See `EmulatorDriver`."""
        with deferred("needed by labs alone"):
            from mplab.drivers.shaper.linkem.emulator import LinkemShaper
        return LinkemShaper(
            air=air,
            phone=phone,
            proxy=proxy,
            probe_server=probe_server,
            directory=directory,
            wan_delay_ms=wan_delay_ms,
        )


DRIVER = Linkem()
