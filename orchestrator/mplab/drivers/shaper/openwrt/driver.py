"""Driver ``openwrt``: a router with OpenWrt, over SSH."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.base.findings import Finding
from mplab.drivers.shaper.driver import MachineState
from mplab.drivers.shaper.openwrt import guard
from mplab.drivers.shaper.openwrt.check import check_router
from mplab.drivers.shaper.openwrt.settings import RouterFile
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.shell import connected
from mplab.userfiles.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.openwrt.router import Router
    from mplab.drivers.shaper.owner import Owner
    from mplab.drivers.shaper.tc.ssh import SshConnection


class OpenWrt(TcDriver[RouterFile, "SshConnection"]):
    """`MachineDriver` for routers with OpenWrt."""

    name = "openwrt"
    title = "a router with OpenWrt, over SSH"
    section: Section = "routers"
    settings = RouterFile
    state_directory = guard.STATE

    def shell(self, label: str, settings: RouterFile) -> "SshConnection":
        """See `TcDriver`."""
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.tc.ssh import SshConnection
        return SshConnection(label, settings)

    def hold(self, machine: ShapingMachine[RouterFile], owner: "Owner") -> "Router":
        """See `MachineDriver`."""
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.openwrt.router import Router
        return Router(machine.name, machine.settings, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: ShapingMachine[RouterFile]) -> str:
        """See `MachineDriver`."""
        return machine.settings.login_text()

    def install(self, machine: ShapingMachine[RouterFile]) -> str:
        """Install the dead-man's switch; return a sentence about it."""
        done = "the dead-man's switch is installed and runs"
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return done if guard.install(ssh) else f"{done} already"

    def remove(self, machine: ShapingMachine[RouterFile]) -> str:
        """Remove the dead-man's switch; return a sentence about it."""
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return "the dead-man's switch is removed" if guard.remove(ssh) else "nothing of mplab is installed"

    def show(self, machine: ShapingMachine[RouterFile]) -> MachineState:
        """See `MachineDriver`."""
        with connected(self.shell(machine.label, machine.settings)) as ssh:
            return guard.show(ssh)

    def key_problem(self, settings: RouterFile) -> str:
        """See `TcDriver`."""
        return settings.key_problem()

    def check_connected(
        self, shell: "SshConnection", machine: ShapingMachine[RouterFile], lab_file: str
    ) -> Iterator[Finding]:
        """See `TcDriver`."""
        return check_router(shell, machine, lab_file)


DRIVER = OpenWrt()
