"""Base classes of the drivers for computers with Linux: a server, or the host that runs mplab."""

from typing import TYPE_CHECKING, Generic, TypeVar

from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.machine import LinuxHost
from mplab.drivers.shaper.tc.shell import CommandShell, ShellT
from mplab.userfiles.labs.machine_fields import MachineFile
from mplab.userfiles.labs.machines import ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner


class LinuxHostFile(MachineFile):
    """Entry of a computer with Linux in a lab file: base class of the models of its drivers."""

    if TYPE_CHECKING:  # declared by each model, at their own positions among the fields
        interface: str
        sudo: bool
        dead_man: float

    @property
    def shaped_interface(self) -> str:
        """Interface of the computer that is shaped if a phone's path names no interface; see `MachineFile`."""
        return self.interface


HostSettings = TypeVar("HostSettings", bound=LinuxHostFile)


class LinuxHostDriver(TcDriver[HostSettings, ShellT], Generic[HostSettings, ShellT]):
    """Base class of the drivers for computers with Linux; nothing is installed on them."""

    state_directory = LinuxHost.state_directory

    def hold(self, machine: ShapingMachine[HostSettings], owner: "Owner") -> LinuxHost:
        """Return a context that holds the computer: no other process can shape it; see `MachineDriver`."""
        return LinuxHost(
            machine.label,
            self.shell(machine.label, machine.settings),
            interface=machine.settings.interface,
            interfaces=machine.interfaces,
            dead_man_s=machine.settings.dead_man,
            restore_command=restore_argv(machine.label, self.name, machine.settings),
            owner=owner,
        )


def local_shell(label: str, settings: LinuxHostFile) -> CommandShell:
    """Return an unconnected root shell on this host; `label` is its name in messages."""
    return CommandShell(label, ["sudo", "-n"] if settings.sudo else [], where="this machine")
