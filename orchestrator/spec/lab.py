"""Lab files: which routers and servers shape, how they are reached, and where each path of each phone is shaped."""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from orchestrator.spec.check import Checker
from orchestrator.spec.names import Name
from orchestrator.spec.proxyfile import ProxyFile
from orchestrator.spec.suggest import show, unknown
from orchestrator.spec.units import DurationS, between
from orchestrator.spec.yaml import load_yaml

INTERFACES = {"wifi": "wlan0", "lte": "rmnet0"}
"""Path → the phone's interface."""

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


def _matching(pattern: re.Pattern[str], kind: str, example: str) -> BeforeValidator:
    def parse(found: object) -> str:
        if isinstance(found, str) and pattern.fullmatch(found):
            return found
        raise ValueError(f"{kind} {show(found)}: one name is needed, like {example!r}")

    return BeforeValidator(parse)


def _pattern(pattern: re.Pattern[str]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})


Host = Annotated[str, BeforeValidator(_parse_host)]
Mac = Annotated[str, BeforeValidator(_parse_mac)]
Ip = Annotated[str, BeforeValidator(_parse_ip)]
Fingerprint = Annotated[str, BeforeValidator(_parse_fingerprint), _pattern(_FINGERPRINT)]
InterfaceName = Annotated[str, _matching(_INTERFACE, "interface", "phy0-ap0"), _pattern(_INTERFACE)]
UserName = Annotated[str, _matching(_USER, "user", "root"), _pattern(_USER)]
UciSection = Annotated[str, _matching(_UCI_SECTION, "section", "radio0"), _pattern(_UCI_SECTION)]


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


class RouterFile(SshFile):
    """One router."""

    driver: Literal["openwrt"] = Field("openwrt", description="OpenWrt over SSH.")
    host: Host = Field(description="Name or address.")
    interface: InterfaceName = Field(description="The router's interface towards the phones.")
    flow_offload: Literal["refuse", "switch-off"] = Field(
        "refuse", description="When the router forwards past its queues: do not use it so, or switch that off."
    )
    dead_man: DeadMan = Field(15.0, description="Silence after which it takes all shaping back.")
    radio: RadioFile | None = Field(None, description="What its WiFi shall be meanwhile.")


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


class AttachmentFile(BaseModel):
    """Where one path of a phone is shaped."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    router: Name | None = Field(None, description="One of the routers.")
    server: Name | None = Field(None, description="One of the servers.")
    at: Literal["phone"] | None = Field(None, description="On the phone itself, by its root_shell.")
    mac: Mac | None = Field(None, description="The phone's address at the router or server.")
    ip: Ip | None = Field(None, description="The phone's address as the router or server sees it.")
    interface: InterfaceName | None = Field(
        None, description="Of the router or server, when it is another one; of the phone."
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if sum(given is not None for given in (self.router, self.server, self.at)) != 1:
            raise ValueError("one of 'router: NAME', 'server: NAME' and 'at: phone' says where it is shaped")
        if self.mac and self.ip:
            raise ValueError("mac and ip: one of them says which packets are the phone's")
        if self.at and (self.mac or self.ip):
            raise ValueError("mac, ip: not with 'at: phone', where everything at the interface is the phone's")
        if self.at and not self.interface:
            raise ValueError("'at: phone' needs the phone's interface; see 'ip link' there, like 'rmnet_data0'")
        return self

    def place(self, phone: str) -> str:
        """Name of what shapes, when this is a path of `phone`."""
        return self.router or self.server or phone

    @property
    def whose(self) -> str:
        """``10.0.0.2``, ``02:…``, or "" for everything at the interface."""
        return self.mac or self.ip or ""


class PhoneFile(BaseModel):
    """One phone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wifi: AttachmentFile | None = Field(None, description="Where its WiFi path is shaped.")
    lte: AttachmentFile | None = Field(None, description="Where its cellular path is shaped.")
    root_shell: PhoneShellFile | None = Field(None, description="How a root shell is had on it.")

    def attachments(self) -> dict[str, AttachmentFile]:
        """By the phone's interface: ``wlan0``, ``rmnet0``."""
        return {INTERFACES[path]: found for path in INTERFACES if (found := getattr(self, path)) is not None}


class LabFile(BaseModel):
    """A lab as written in a file."""

    model_config = ConfigDict(frozen=True, extra="forbid", title="mplab lab")

    mplab: Literal[1] = Field(description="Format of this file.")
    name: Name = Field(description="Of the lab.")
    routers: dict[Name, RouterFile] = Field(default_factory=dict, description="The routers, by name.")
    servers: dict[Name, ServerFile] = Field(default_factory=dict, description="The servers, by name.")
    phones: dict[Name, PhoneFile] = Field(default_factory=dict, description="The phones, by name.")
    proxy: ProxyFile | None = Field(None, description="Proxy and origin services, when they are not the virtual lab's.")

    def places(self) -> dict[str, PlaceFile]:
        """Everything that shapes, by name."""
        shells = {name: phone.root_shell for name, phone in self.phones.items() if phone.root_shell is not None}
        return {**self.routers, **self.servers, **shells}


def load_lab(path: Path) -> LabFile:
    """Read a lab file.

    Raises:
        InputError: it is wrong: all problems, each with file, line, what was found and what is allowed.
    """
    document = load_yaml(path)
    checker = Checker(document)
    lab = checker.model(LabFile, document.data)
    if lab is not None:
        _check_attachments(lab, checker)
    checker.raise_problems()
    assert lab is not None  # noqa: S101 - raise_problems has raised otherwise
    return lab


def _check_attachments(lab: LabFile, checker: Checker) -> None:
    if not lab.places() and lab.proxy is None:
        checker.add((), "nothing shapes: at least one of 'routers', 'servers', or a phone's 'root_shell' is needed")
    for name in lab.servers:
        if name in lab.routers:
            checker.add(("servers", name), f"{name!r} is the name of a router already")
    taken: dict[tuple[str, str], dict[str, str]] = {}
    for name, phone in lab.phones.items():
        if phone.root_shell is not None and (name in lab.routers or name in lab.servers):
            checker.add(("phones", name), f"{name!r} is the name of a router or server already")
        if not phone.attachments():
            checker.add(("phones", name), "no path: 'wifi', 'lte' or both say where it is shaped")
        for path, interface in INTERFACES.items():
            attachment = phone.attachments().get(interface)
            if attachment is None or not _place_is_there(lab, name, path, attachment, checker):
                continue
            place = attachment.place(name)
            at = attachment.interface or interface_of(lab.places()[place])
            others = taken.setdefault((place, at), {})
            me = f"{name}.{path}"
            where = ("phones", name, path)
            if attachment.whose in others:
                whose = attachment.whose or "everything"
                checker.add(where, f"{whose} at {at} is that of {others[attachment.whose]} already")
            elif others and ("" in others or not attachment.whose):
                checker.add(where, f"shares {at} with {next(iter(others.values()))}: give each of them mac or ip")
            others.setdefault(attachment.whose, me)


def _place_is_there(lab: LabFile, phone: str, path: str, attachment: AttachmentFile, checker: Checker) -> bool:
    at = ("phones", phone, path)
    if attachment.router is not None and attachment.router not in lab.routers:
        checker.add((*at, "router"), unknown("router", attachment.router, lab.routers))
    elif attachment.server is not None and attachment.server not in lab.servers:
        checker.add((*at, "server"), unknown("server", attachment.server, lab.servers))
    elif attachment.at is not None and lab.phones[phone].root_shell is None:
        checker.add((*at, "at"), f"{phone} has no 'root_shell', which says how a root shell is had on it")
    else:
        return True
    return False


def interface_of(place: PlaceFile) -> str:
    """The interface that is shaped where none is named; a phone has none."""
    return "" if isinstance(place, PhoneShellFile) else place.interface
