"""Driver ``linux``: a server with Linux and iproute2, reached over SSH, or this host itself."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mplab.base.deferred import deferred
from mplab.drivers.shaper.tc.linux_host import LinuxHostDriver, LinuxHostFile, local_shell
from mplab.drivers.shaper.tc.shell import Shell
from mplab.userfiles.labs.machine_fields import DeadMan, Host, InterfaceName, SshFile
from mplab.userfiles.labs.machines import Section, ShapingMachine, known_driver

_OF_SSH = ("port", "user", "key", "host_key", "known_hosts")


class ServerFile(SshFile, LinuxHostFile):
    """Entry of a Linux server in a lab file: the proxy's host, or another server that forwards the phones' packets."""

    driver: Annotated[Literal["linux"], known_driver("servers")] = Field("linux", description="Linux with iproute2.")
    host: Host = Field("", description="Name or address; default: this machine.")
    sudo: bool = Field(False, description="The user becomes root by 'sudo -n'.")
    interface: InterfaceName = Field(description="The server's interface towards the phones.")
    dead_man: DeadMan = Field(15.0, description="Time without heartbeat after which it removes all shaping.")

    @model_validator(mode="after")
    def _ssh_needs_a_host(self) -> Self:
        if not self.host and (ssh_keys := sorted(self.model_fields_set & set(_OF_SSH))):
            raise ValueError(f"{', '.join(ssh_keys)}: only for SSH, and there is no 'host'. Add 'host', or remove them")
        return self


class Linux(LinuxHostDriver[ServerFile, Shell]):
    """`MachineDriver` for Linux servers; nothing is installed on the server."""

    name = "linux"
    title = "a Linux server, over SSH, or this machine"
    section: Section = "servers"
    settings = ServerFile

    def shell(self, label: str, settings: ServerFile) -> Shell:
        """Return an unconnected root shell: over SSH or, without ``host``, on this host."""
        if not settings.host:
            return local_shell(label, settings)
        with deferred("SSH is slow to import"):
            from mplab.drivers.shaper.tc.ssh import SshConnection
        return SshConnection(label, settings, sudo=settings.sudo)

    def uses(self, machine: ShapingMachine[ServerFile]) -> str:
        """Return the SSH login or, without ``host``, the shaped interface of this host, as one phrase."""
        if machine.settings.host:
            return machine.settings.login_text()
        return f"servers.{machine.name} shapes {machine.settings.interface} of this host"

    def key_problem(self, settings: ServerFile) -> str:
        """Return why the SSH key in the settings cannot be used; "" if it can be used or the settings name no key."""
        return settings.key_problem()


DRIVER = Linux()
