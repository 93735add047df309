"""Settings of this machine as a router in a lab file."""

from typing import Literal

from pydantic import Field

from mplab.userfiles.machine_fields import DeadMan, InterfaceName, MachineFile


class ThisMachineFile(MachineFile):
    """The host that runs mplab as access point, by hostapd or as a bridge; it needs no address."""

    driver: Literal["this-machine"] = Field(description="The host that runs mplab is the access point.")
    interface: InterfaceName = Field(
        description="Its interface towards the phones: the radio, or a port of the bridge."
    )
    sudo: bool = Field(False, description="mplab's user becomes root by 'sudo -n'.")
    dead_man: DeadMan = Field(15.0, description="Silence of mplab after which a background shell takes all back.")

    @property
    def shaped_interface(self) -> str:
        """See `MachineFile`."""
        return self.interface
