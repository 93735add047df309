"""Driver ``root-shell``: a phone that shapes its own paths; a command line of the lab file opens its root shell."""

import shlex
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.findings import Level
from mplab.drivers.shaper.restore import restore_argv
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.machine import PHONE_STATE, RootedPhone
from mplab.drivers.shaper.tc.shell import CommandShell
from mplab.userfiles.labs.machine_fields import DeadMan
from mplab.userfiles.labs.machines import Section, ShapingMachine

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner


class PhoneShellFile(BaseModel):
    """Value of a phone's key ``root_shell`` in a lab file: the phone shapes its own paths by this root shell."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str] = Field(
        min_length=1,
        description="Command line that runs 'sh', appended to it, as root: [adb, -s, SERIAL, shell, su, -c].",
    )
    dead_man: DeadMan = Field(15.0, description="Time without heartbeat after which it removes all shaping.")


class RootShell(TcDriver[PhoneShellFile, CommandShell]):
    """`MachineDriver` for phones whose root shell the lab file defines; nothing is installed on the phone."""

    name = "root-shell"
    title = "a phone, by a command line that opens a root shell on it"
    section: Section = "phones"
    root_shell = True
    settings = PhoneShellFile
    state_directory = PHONE_STATE
    without_ethtool: ClassVar[Level] = "warning"

    def shell(self, label: str, settings: PhoneShellFile) -> CommandShell:
        """Return an unconnected root shell on the phone; see `TcDriver`."""
        return CommandShell(label, settings.command)

    def hold(self, machine: ShapingMachine[PhoneShellFile], owner: "Owner") -> RootedPhone:
        """Return a context that holds the phone: no other process can shape it; see `MachineDriver`."""
        return RootedPhone(
            machine.label,
            self.shell(machine.label, machine.settings),
            interfaces=machine.interfaces,
            dead_man_s=machine.settings.dead_man,
            restore_command=restore_argv(machine.label, self.name, machine.settings),
            owner=owner,
        )

    def uses(self, machine: ShapingMachine[PhoneShellFile]) -> str:
        """Return a phrase with the command line, run on this host, that opens the phone's root shell."""
        return f"phones.{machine.name}.root_shell runs on this host: {shlex.join(machine.settings.command)}"


DRIVER = RootShell()
