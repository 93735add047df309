"""Driver ``linux``: a server with Linux and iproute2, over SSH, or this machine."""

from typing import TYPE_CHECKING

from mplab.base.deferred import deferred
from mplab.drivers.shaper.linux.place import LinuxServer
from mplab.drivers.shaper.linux.settings import ServerFile
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.shell import CommandShell, Shell
from mplab.userfiles.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner


class Linux(TcDriver[ServerFile, Shell]):
    """`MachineDriver` for Linux servers; nothing is installed on the server."""

    name = "linux"
    title = "a Linux server, over SSH, or this machine"
    section: Section = "servers"
    settings = ServerFile
    state_directory = LinuxServer.state_directory

    def shell(self, label: str, settings: ServerFile) -> Shell:
        """See `TcDriver`."""
        if not settings.host:
            return CommandShell(label, ["sudo", "-n"] if settings.sudo else [], where="this machine")
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.tc.ssh import SshConnection
        return SshConnection(label, settings, sudo=settings.sudo)

    def hold(self, machine: ShapingMachine[ServerFile], owner: "Owner") -> LinuxServer:
        """See `MachineDriver`."""
        shell = self.shell(machine.label, machine.settings)
        return LinuxServer(machine.label, machine.settings, shell, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: ShapingMachine[ServerFile]) -> str:
        """See `MachineDriver`."""
        if machine.settings.host:
            return machine.settings.login_text()
        return f"servers.{machine.name} shapes {machine.settings.interface} of this host"

    def key_problem(self, settings: ServerFile) -> str:
        """See `TcDriver`."""
        return settings.key_problem()


DRIVER = Linux()
