"""What shapes, as a lab file has it: routers, servers, phones that shape by themselves."""

import re
from ipaddress import ip_address
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_validator

from mplab.base.suggest import show, unknown
from mplab.format.patterns import pattern_schema, text_like
from mplab.format.units import DurationS, between
from mplab.userfiles.check import tag_of

SHORTEST_DEAD_MAN_S, LONGEST_DEAD_MAN_S = 5, 600

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_INTERFACE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_UCI_SECTION = re.compile(r"[A-Za-z0-9_]{1,64}")


def _parse_host(found: object) -> str:
    if isinstance(found, str) and (_HOST.fullmatch(found) or _is_address(found)):
        return found
    raise ValueError(f"host {show(found)}: a name or an IP address is needed, like '192.168.1.1'")


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether `host` is this machine, whatever a name server says."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _parse_mac(found: object) -> str:
    if isinstance(found, str) and _MAC.fullmatch(found.lower()):
        return found.lower()
    raise ValueError(f"mac {show(found)}: six pairs of hexadecimal digits are needed, like 'a4:50:46:01:02:03'")


def _parse_ip(found: object) -> str:
    if isinstance(found, str) and _is_address(found):
        return str(ip_address(found))
    raise ValueError(f"ip {show(found)}: one address is needed, like '192.168.1.23'")


def _parse_fingerprint(found: object) -> str:
    if isinstance(found, str) and _FINGERPRINT.fullmatch(found):
        return found
    raise ValueError(
        f"host_key {show(found)}: a fingerprint is needed, 'SHA256:' and 43 characters, as "
        "'dropbearkey -y -f /etc/dropbear/dropbear_ed25519_host_key' shows it on the router"
    )


def _named(pattern: re.Pattern[str], kind: str, example: str) -> BeforeValidator:
    return text_like(pattern, kind, f"one name is needed, like {example!r}")


Host = Annotated[str, BeforeValidator(_parse_host)]
Mac = Annotated[str, BeforeValidator(_parse_mac)]
Ip = Annotated[str, BeforeValidator(_parse_ip)]
Fingerprint = Annotated[str, BeforeValidator(_parse_fingerprint), pattern_schema(_FINGERPRINT)]
InterfaceName = Annotated[str, _named(_INTERFACE, "interface", "phy0-ap0"), pattern_schema(_INTERFACE)]
UserName = Annotated[str, _named(_USER, "user", "root"), pattern_schema(_USER)]
UciSection = Annotated[str, _named(_UCI_SECTION, "section", "radio0"), pattern_schema(_UCI_SECTION)]


class RadioFile(BaseModel):
    """What a router's WiFi shall be while mplab holds it; what is not named stays as it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: UciSection = Field("radio0", description="The radio: a section of /etc/config/wireless.")
    network: UciSection = Field("default_radio0", description="Its network: a section of /etc/config/wireless.")
    enabled: bool | None = Field(None, description="Radio on or off.")
    channel: int | None = Field(None, ge=1, le=233, description="Channel.")
    tx_power_dbm: int | None = Field(None, ge=0, le=40, description="Transmit power, dBm.")
    ssid: str | None = Field(None, min_length=1, max_length=32, description="Name of the network.")


DeadMan = Annotated[DurationS, between("dead_man", SHORTEST_DEAD_MAN_S, LONGEST_DEAD_MAN_S, "{least} to {most}")]


class SshFile(BaseModel):
    """What is reached over SSH."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field("", description="Name or address.")
    port: int = Field(22, ge=1, le=65535, description="Of its SSH server.")
    user: UserName = Field("root", description="Who logs in.")
    key: str = Field("", description="File of the private key; without it, the keys of the SSH agent.")
    host_key: Fingerprint | None = Field(None, description="Fingerprint of its host key, SHA256:….")
    known_hosts: str = Field("", description="File of known hosts, when there is no host_key.")


ROUTER_DRIVERS = ("openwrt", "virtual")


def _check_router_driver(found: object) -> object:
    if isinstance(found, str) and found not in ROUTER_DRIVERS:
        raise ValueError(unknown("driver", found, ROUTER_DRIVERS))
    return found


class RouterFile(SshFile):
    """One router."""

    driver: Annotated[Literal["openwrt"], BeforeValidator(_check_router_driver)] = Field(
        "openwrt", description="OpenWrt over SSH."
    )
    host: Host = Field(description="Name or address.")
    interface: InterfaceName = Field(description="The router's interface towards the phones.")
    flow_offload: Literal["refuse", "switch-off"] = Field(
        "refuse", description="When the router forwards past its queues: do not use it so, or switch that off."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")
    radio: RadioFile | None = Field(None, description="What its WiFi shall be meanwhile.")


class VirtualRouterFile(BaseModel):
    """A router that a lab boots for itself, in the place of its own: how it is reached, the lab knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    driver: Literal["virtual"] = Field(description="A small virtual machine, driven as OpenWrt is.")
    flow_offload: Literal["refuse", "switch-off"] = Field("refuse", description="As of a router.")
    dead_man: DeadMan = Field(60.0, description="Silence after which it takes all shaping back.")
    radio: RadioFile | None = Field(None, description="What its WiFi shall be meanwhile.")


def _router_of(found: object) -> str:
    driver = found.get("driver") if isinstance(found, dict) else getattr(found, "driver", "")
    return tag_of(VirtualRouterFile if driver == "virtual" else RouterFile)


AnyRouterFile = Annotated[
    Annotated[RouterFile, Tag(tag_of(RouterFile))] | Annotated[VirtualRouterFile, Tag(tag_of(VirtualRouterFile))],
    Discriminator(_router_of),
]


class ServerFile(SshFile):
    """One Linux server: the one that the proxy runs on, or any other that the phones' packets pass."""

    driver: Literal["linux"] = Field("linux", description="Linux with iproute2.")
    host: Host = Field("", description="Name or address; without it, this machine.")
    sudo: bool = Field(False, description="The user becomes root by 'sudo -n'.")
    interface: InterfaceName = Field(description="The server's interface towards the phones.")
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")

    @model_validator(mode="after")
    def _ssh_needs_a_host(self) -> Self:
        if not self.host and (given := sorted(self.model_fields_set & set(_OF_SSH))):
            raise ValueError(f"{', '.join(given)}: of SSH, but there is no 'host': without it, this machine is meant")
        return self


_OF_SSH = ("port", "user", "key", "host_key", "known_hosts")


class PhoneShellFile(BaseModel):
    """A phone that shapes by itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: list[str] = Field(
        min_length=1, description="Opens a root shell, to be given 'sh': [adb, -s, SERIAL, shell, su, -c]."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")


PlaceFile = RouterFile | ServerFile | PhoneShellFile
"""Something that shapes."""


def interface_of(place: PlaceFile) -> str:
    """The interface that is shaped where none is named; a phone has none."""
    return "" if isinstance(place, PhoneShellFile) else place.interface
