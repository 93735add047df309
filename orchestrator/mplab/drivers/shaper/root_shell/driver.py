"""Driver ``root-shell``: a phone that shapes its own paths; a command line opens the root shell."""

import shlex
from typing import TYPE_CHECKING, ClassVar

from mplab.base.findings import Level
from mplab.drivers.shaper.root_shell.phone import ShapingPhone
from mplab.drivers.shaper.root_shell.settings import PhoneShellFile
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.linux import PHONE_STATE
from mplab.drivers.shaper.tc.shell import CommandShell
from mplab.userfiles.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner


class RootShell(TcDriver[PhoneShellFile, CommandShell]):
    """`MachineDriver` for phones with a root shell in the lab file; nothing is installed on the phone."""

    name = "root-shell"
    title = "a phone, by a command line that opens a root shell on it"
    section: Section = "phones"
    root_shell = True
    settings = PhoneShellFile
    state_directory = PHONE_STATE
    without_ethtool: ClassVar[Level] = "warning"

    def shell(self, label: str, settings: PhoneShellFile) -> CommandShell:
        """See `TcDriver`."""
        return CommandShell(label, settings.command)

    def hold(self, machine: ShapingMachine[PhoneShellFile], owner: "Owner") -> ShapingPhone:
        """See `MachineDriver`."""
        shell = self.shell(machine.label, machine.settings)
        return ShapingPhone(machine.label, machine.settings, shell, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: ShapingMachine[PhoneShellFile]) -> str:
        """See `MachineDriver`."""
        return f"phones.{machine.name}.root_shell runs on this host: {shlex.join(machine.settings.command)}"


DRIVER = RootShell()
