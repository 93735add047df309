"""Driver ``virtual``: a router that a virtual lab boots. The lab then controls it like a router with OpenWrt."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mplab.base import programs
from mplab.base.deferred import deferred
from mplab.base.errors import MplabError
from mplab.base.extras import require
from mplab.base.findings import Finding
from mplab.drivers.shaper.driver import InsideDriver, Wiring
from mplab.drivers.shaper.openwrt.driver import RadioFile
from mplab.drivers.shaper.tc.base import TC
from mplab.drivers.shaper.virtual.image import kernel_release
from mplab.userfiles.labs.machine_fields import DeadMan, MachineFile
from mplab.userfiles.labs.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.base.nodes import Node
    from mplab.drivers.shaper.virtual.router import VirtualRouter


class VirtualRouterFile(MachineFile):
    """Entry in a lab file of a router that a virtual lab boots in place of its node ``router``; needs no address."""

    driver: Literal["virtual"] = Field(description="A small virtual machine, controlled like a router with OpenWrt.")
    flow_offload: Literal["refuse", "switch-off"] = Field("refuse", description="See the driver openwrt.")
    dead_man: DeadMan = Field(60.0, description="Time without heartbeat after which it removes all shaping.")
    radio: RadioFile | None = Field(None, description="Its WiFi while mplab holds it.")


class Virtual(InsideDriver[VirtualRouterFile]):
    """`InsideDriver` for routers in user-mode Linux."""

    name = "virtual"
    title = "a virtual router with Linux in user mode"
    section: Section = "routers"
    settings = VirtualRouterFile
    method = "tc"
    abilities = TC
    programs = programs.OF_VIRTUAL_ROUTER

    def open(
        self, machine: ShapingMachine[VirtualRouterFile], *, node: "Node", wiring: Wiring, directory: Path, log: Path
    ) -> "VirtualRouter":
        """Return a virtual router that the caller must start; see `InsideDriver`."""
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.virtual.router import VirtualRouter
        return VirtualRouter(machine, node=node, wiring=wiring, directory=directory, log=log)

    def describe(self) -> dict[str, str]:
        """Return the versions of the router's parts on this host by name: kernel, tc, busybox, dropbear.

        Raises:
            LabNotReadyError: a part, or the extra ``phones``, is missing.
        """
        require("phones")
        parts = (programs.TC, programs.BUSYBOX, programs.DROPBEAR)
        return {"kernel": kernel_release(), **{program.name: program.version() for program in parts}}

    def check(self, machine: ShapingMachine[VirtualRouterFile], lab_file: str) -> Iterator[Finding]:
        """Yield findings about the programs and parts of a virtual router on this host; no router is booted."""
        label = machine.label
        missing = [program for program in self.programs if program.find() is None]
        for program in missing:
            yield Finding(f"{label}: {program.name}", "missing", f"not found ({program.purpose})", program.remedy)
        if missing:
            return
        try:
            parts = self.describe()
        except MplabError as error:
            yield Finding(label, "missing", str(error), "see the message")
            return
        made_of = ", ".join(f"{part} {version}" for part, version in parts.items())
        yield Finding(label, "ok", f"can be made: {made_of}", f"to boot it: mplab lab up --lab {lab_file}")


DRIVER = Virtual()
