"""The kind ``linux``: a server with Linux and iproute2, over SSH, or this machine."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from mplab.drivers.shaper.tc.base import TcDriver
from mplab.drivers.shaper.tc.shell import CommandShell, Shell
from mplab.userfiles.machines import Machine, Section, known_driver
from mplab.userfiles.places import DeadMan, Host, InterfaceName, SshFile

if TYPE_CHECKING:
    from mplab.drivers.shaper.linux.place import LinuxServer
    from mplab.drivers.shaper.owner import Owner

_OF_SSH = ("port", "user", "key", "host_key", "known_hosts")


class ServerFile(SshFile):
    """One Linux server: the one that the proxy runs on, or any other that the phones' packets pass."""

    driver: Annotated[Literal["linux"], known_driver("servers")] = Field("linux", description="Linux with iproute2.")
    host: Host = Field("", description="Name or address; without it, this machine.")
    sudo: bool = Field(False, description="The user becomes root by 'sudo -n'.")
    interface: InterfaceName = Field(description="The server's interface towards the phones.")
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")

    @property
    def shaped_interface(self) -> str:
        """See `MachineFile`."""
        return self.interface

    @model_validator(mode="after")
    def _ssh_needs_a_host(self) -> Self:
        if not self.host and (given := sorted(self.model_fields_set & set(_OF_SSH))):
            raise ValueError(f"{', '.join(given)}: of SSH, but there is no 'host': without it, this machine is meant")
        return self


class Linux(TcDriver[ServerFile, Shell]):
    """`MachineDriver` of Linux servers; nothing is installed there."""

    title = "a Linux server, over SSH, or this machine"
    section: Section = "servers"
    settings = ServerFile
    state_directory = "/run/mplab"

    def shell(self, label: str, settings: ServerFile) -> Shell:
        """See `TcDriver`."""
        if not settings.host:
            return CommandShell(label, ["sudo", "-n"] if settings.sudo else [], where="this machine")
        from mplab.drivers.shaper.tc.ssh import SshConnection  # noqa: PLC0415 - slow to import

        return SshConnection(label, settings, sudo=settings.sudo)

    def hold(self, machine: Machine[ServerFile], owner: "Owner") -> "LinuxServer":
        """See `MachineDriver`."""
        from mplab.drivers.shaper.linux.place import LinuxServer  # noqa: PLC0415 - it imports this module

        return LinuxServer(machine.name, machine.settings, owner=owner, interfaces=machine.interfaces)

    def uses(self, machine: Machine[ServerFile]) -> str:
        """See `MachineDriver`."""
        if machine.settings.host:
            return machine.settings.login_text()
        return f"servers.{machine.name} shapes {machine.settings.interface} of this host"

    def key_problem(self, settings: ServerFile) -> str:
        """See `TcDriver`."""
        return settings.key_problem()


DRIVER = Linux()
