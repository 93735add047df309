"""Driver ``this-machine``: the host's own traffic control, without SSH."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mplab.base.findings import Finding
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.linux import LinuxHost
from mplab.drivers.shaper.tc.shell import CommandShell
from mplab.drivers.shaper.this_machine.check import check_access_point
from mplab.drivers.shaper.this_machine.settings import ThisMachineFile
from mplab.userfiles.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner


class ThisMachineDriver(TcDriver[ThisMachineFile, CommandShell]):
    """`MachineDriver` for the host that runs mplab; nothing is installed."""

    name = "this-machine"
    title = "this machine, which is the access point itself"
    section: Section = "routers"
    settings = ThisMachineFile
    state_directory = LinuxHost.state_directory

    def shell(self, label: str, settings: ThisMachineFile) -> CommandShell:
        """See `TcDriver`."""
        return CommandShell(label, ["sudo", "-n"] if settings.sudo else [], where="this machine")

    def hold(self, machine: ShapingMachine[ThisMachineFile], owner: "Owner") -> LinuxHost:
        """See `MachineDriver`."""
        return LinuxHost(
            machine.label,
            self.shell(machine.label, machine.settings),
            interface=machine.settings.interface,
            interfaces=machine.interfaces,
            dead_man_s=machine.settings.dead_man,
            restore_command=restore_argv(machine.label, self.name, machine.settings),
            owner=owner,
        )

    def uses(self, machine: ShapingMachine[ThisMachineFile]) -> str:
        """See `MachineDriver`."""
        return f"routers.{machine.name} shapes {machine.settings.interface} of this host"

    def check_connected(
        self, shell: CommandShell, machine: ShapingMachine[ThisMachineFile], lab_file: str
    ) -> Iterator[Finding]:
        """See `TcDriver`."""
        yield from super().check_connected(shell, machine, lab_file)
        yield from check_access_point(shell, machine)


DRIVER = ThisMachineDriver()
