"""Host names and addresses."""

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import BeforeValidator

from mplab.base.suggest import show

_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def _parse_host(found: object) -> str:
    if isinstance(found, str) and (_HOST.fullmatch(found) or is_address(found)):
        return found
    raise ValueError(f"host {show(found)}: a name or an IP address is needed, like '192.168.1.1'")


def is_address(text: str) -> bool:
    """Return whether `text` is an IP address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether `host` is this machine, without asking a name server: a loopback address or ``localhost``."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


Host = Annotated[str, BeforeValidator(_parse_host)]
