"""The kind ``root-shell``: a phone that shapes itself, by a root shell that a command line opens."""

import shlex
from typing import TYPE_CHECKING, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from mplab.base.findings import Level
from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.shell import CommandShell
from mplab.userfiles.machines import Machine, Section
from mplab.userfiles.places import DeadMan

if TYPE_CHECKING:
    from mplab.drivers.shaper.owner import Owner
    from mplab.drivers.shaper.root_shell.phone import ShapingPhone

STATE = "/data/local/tmp/mplab"
"""Where `adb` puts things, since a phone has no /run."""


class PhoneShellFile(BaseModel):
    """A phone that shapes by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str] = Field(
        min_length=1, description="Opens a root shell, to be given 'sh': [adb, -s, SERIAL, shell, su, -c]."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")


class RootShell(TcDriver[PhoneShellFile, CommandShell]):
    """`MachineDriver` of phones whose root shell the lab file names; nothing is installed there."""

    title = "a phone, by a command line that opens a root shell on it"
    section: Section = "phones"
    settings = PhoneShellFile
    state_directory = STATE
    without_ethtool: ClassVar[Level] = "warning"

    def shell(self, label: str, settings: PhoneShellFile) -> CommandShell:
        """See `TcDriver`."""
        return CommandShell(label, settings.command)

    def hold(self, machine: Machine[PhoneShellFile], owner: "Owner") -> "ShapingPhone":
        """See `MachineDriver`."""
        from mplab.drivers.shaper.root_shell.phone import ShapingPhone  # noqa: PLC0415 - it imports this module

        return ShapingPhone(machine.name, machine.settings, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: Machine[PhoneShellFile]) -> str:
        """See `MachineDriver`."""
        return f"phones.{machine.name}.root_shell runs on this host: {shlex.join(machine.settings.command)}"


DRIVER = RootShell()
