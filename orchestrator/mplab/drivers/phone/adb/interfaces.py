"""Which interfaces of a phone are WiFi and cellular, and which addresses they have."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mplab.base.paths import INTERFACES

_NAMES = {
    "wifi": re.compile(r"wlan\d+|swlan\d+"),
    # Qualcomm, MediaTek, Samsung's Exynos, Google's Tensor, HiSilicon, Spreadtrum, older ones; clat4 is their 464XLAT.
    "lte": re.compile(
        r"v4-rmnet\w*|rmnet_data\d+|rmnet\d+|rmnet_usb\d+|ccmni\d+|v4-ccmni\d+|seth_lte\d+|wwan\d+|pdp_ip\d+|ppp\d+"
    ),
}


@dataclass(frozen=True)
class Interface:
    """One interface as ``ip addr`` shows it."""

    name: str
    address: str
    """IPv4, without prefix length; ""."""
    up: bool


def parse_addresses(text: str) -> dict[str, Interface]:
    """``ip -4 -o addr show`` behind ``ip -o link show`` → the interfaces by name."""
    found: dict[str, Interface] = {}
    for match in re.finditer(r"^\d+: (\S+?)(?:@\S+)?: <([^>]*)>", text, re.MULTILINE):
        found[match[1]] = Interface(match[1], "", "UP" in match[2].split(","))
    for match in re.finditer(r"^\d+: (\S+)\s+inet (?:addr:)?([\d.]+)", text, re.MULTILINE):
        name = match[1].partition("@")[0]
        old = found.get(name, Interface(name, "", up=True))
        if not old.address:
            found[name] = Interface(name, match[2], old.up)
    return found


def choose(interfaces: Mapping[str, Interface], named: Mapping[str, str]) -> dict[str, str]:
    """What mplab calls an interface → the phone's name of it: ``{"wlan0": "wlan0", "rmnet0": "rmnet_data2"}``.

    Args:
        interfaces: of the phone.
        named: path (``wifi``, ``lte``) → the one that the lab file names.

    Returns:
        Those that were named or found. Of several, one with an address goes before one that is up, and that before
        others; then the first in the order of their names.
    """
    chosen = {}
    for path, role in INTERFACES.items():
        if path in named:
            chosen[role] = named[path]
            continue
        fitting = [one for one in interfaces.values() if _NAMES[path].fullmatch(one.name)]
        # A phone's IMS has an interface of its own, often rmnet_data0, with IPv6 alone.
        fitting.sort(key=lambda one: (not one.address, not one.up, one.name))
        if fitting:
            chosen[role] = fitting[0].name
    return chosen
