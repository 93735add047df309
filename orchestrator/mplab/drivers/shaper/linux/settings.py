"""Settings of a Linux server in a lab file."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mplab.userfiles.machine_fields import DeadMan, Host, InterfaceName, SshFile
from mplab.userfiles.machines import known_driver

_OF_SSH = ("port", "user", "key", "host_key", "known_hosts")


class ServerFile(SshFile):
    """One Linux server: the proxy's host, or any other that forwards the phones' packets."""

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
