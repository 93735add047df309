"""Settings of a router with OpenWrt in a lab file."""

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from mplab.format.names import pattern_schema
from mplab.userfiles.machine_fields import DeadMan, Host, InterfaceName, SshFile, named
from mplab.userfiles.machines import known_driver

_UCI_SECTION = re.compile(r"[A-Za-z0-9_]{1,64}")
UciSection = Annotated[str, named(_UCI_SECTION, "section", "radio0"), pattern_schema(_UCI_SECTION)]


class RadioFile(BaseModel):
    """WiFi settings of a router while mplab holds it; keys that are not set change nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: UciSection = Field("radio0", description="The radio: a section of /etc/config/wireless.")
    network: UciSection = Field("default_radio0", description="Its network: a section of /etc/config/wireless.")
    enabled: bool | None = Field(None, description="Radio on or off.")
    channel: int | None = Field(None, ge=1, le=233, description="Channel.")
    tx_power_dbm: int | None = Field(None, ge=0, le=40, description="Transmit power, dBm.")
    ssid: str | None = Field(None, min_length=1, max_length=32, description="Name of the network.")


class RouterFile(SshFile):
    """One router."""

    driver: Annotated[Literal["openwrt"], known_driver("routers")] = Field("openwrt", description="OpenWrt over SSH.")
    host: Host = Field(description="Name or address.")
    interface: InterfaceName = Field(description="The router's interface towards the phones.")
    flow_offload: Literal["refuse", "switch-off"] = Field(
        "refuse", description="When the router forwards past its queues: do not use it so, or switch that off."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")
    radio: RadioFile | None = Field(None, description="What its WiFi shall be meanwhile.")

    @property
    def shaped_interface(self) -> str:
        """See `MachineFile`."""
        return self.interface
