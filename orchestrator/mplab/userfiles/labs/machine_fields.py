"""Fields that several kinds of machines in a lab file share: addresses, names, SSH login."""

import re
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, Field

from mplab.base.files import private_file_problem
from mplab.base.suggest import show
from mplab.format import names
from mplab.format.names import FileModel, pattern_schema, text_like
from mplab.format.units import DurationS, between

SHORTEST_DEAD_MAN_S, LONGEST_DEAD_MAN_S = 5, 600

_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_INTERFACE = re.compile(r"[A-Za-z0-9_.@-]{1,15}")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


def _parse_mac(value: object) -> str:
    if isinstance(value, str) and _MAC.fullmatch(value.lower()):
        return value.lower()
    raise ValueError(f"mac {show(value)}: six pairs of hexadecimal digits are needed, like 'a4:50:46:01:02:03'")


def _parse_ip(value: object) -> str:
    if isinstance(value, str) and names.is_address(value):
        return str(ip_address(value))
    raise ValueError(f"ip {show(value)}: one address is needed, like '192.168.1.23'")


def _parse_fingerprint(value: object) -> str:
    if isinstance(value, str) and _FINGERPRINT.fullmatch(value):
        return value
    raise ValueError(
        f"host_key {show(value)}: a fingerprint is needed, 'SHA256:' and 43 characters, as "
        "'dropbearkey -y -f /etc/dropbear/dropbear_ed25519_host_key' shows it on the router"
    )


def named(pattern: re.Pattern[str], kind: str, example: str) -> BeforeValidator:
    """Return a validator for one name that matches `pattern`; `kind` and `example` are used in its message."""
    return text_like(pattern, kind, f"one name is needed, like {example!r}")


Host = names.Host
Mac = Annotated[str, BeforeValidator(_parse_mac)]
Ip = Annotated[str, BeforeValidator(_parse_ip)]
Fingerprint = Annotated[str, BeforeValidator(_parse_fingerprint), pattern_schema(_FINGERPRINT)]
InterfaceName = Annotated[str, named(_INTERFACE, "interface", "phy0-ap0"), pattern_schema(_INTERFACE)]
UserName = Annotated[str, named(_USER, "user", "root"), pattern_schema(_USER)]


DeadMan = Annotated[DurationS, between("dead_man", SHORTEST_DEAD_MAN_S, LONGEST_DEAD_MAN_S, "{least} to {most}")]


class MachineFile(FileModel):
    """Entry of a machine in a lab file, below `routers` or `servers`: base class of the models of shaper drivers.

    Each model has a field `driver`, a Literal of the name under which the driver is registered.
    """

    if TYPE_CHECKING:
        driver: str  # declared by each model, at its own position among the fields

    @property
    def shaped_interface(self) -> str:
        """Interface of the machine that is shaped if a phone's path names none; "": the path must name one."""
        return ""


class SshFile(MachineFile):
    """Entry of a machine that is reached over SSH: its address, user and key."""

    host: str = Field("", description="Name or address.")
    port: int = Field(22, ge=1, le=65535, description="Of its SSH server.")
    user: UserName = Field("root", description="Who logs in.")
    key: str = Field("", description="File of the private key; without it, the keys of the SSH agent.")
    host_key: Fingerprint | None = Field(None, description="Fingerprint of its host key, SHA256:….")
    known_hosts: str = Field("", description="File of known hosts, when there is no host_key.")

    def login_text(self) -> str:
        """Return the login in words: ``logs in to root@192.168.1.1:22 with the key ~/.ssh/mplab``."""
        key = f"the key {self.key}" if self.key else "the keys of the SSH agent"
        return f"logs in to {self.user}@{self.host}:{self.port} with {key}"

    def key_problem(self) -> str:
        """Return why the private key file cannot be used; "": it can be used, or the entry names no file."""
        return private_file_problem(Path(self.key).expanduser()) if self.key else ""
