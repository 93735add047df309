"""Find the WiFi and cellular interfaces of a phone and their addresses."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mplab.base.paths import INTERFACES

_NAMES = {
    "wifi": re.compile(r"wlan\d+|swlan\d+"),
    # Qualcomm, MediaTek, Samsung Exynos, Google Tensor, HiSilicon, Spreadtrum, older chips; v4-*: 464XLAT.
    "lte": re.compile(
        r"v4-rmnet\w*|rmnet_data\d+|rmnet\d+|rmnet_usb\d+|ccmni\d+|v4-ccmni\d+|seth_lte\d+|wwan\d+|pdp_ip\d+|ppp\d+"
    ),
}


@dataclass(frozen=True)
class Interface:
    """A network interface of a phone, as printed by ``ip link`` and ``ip addr``."""

    name: str
    address: str
    """IPv4 address without prefix length, or ""."""
    up: bool


def parse_addresses(text: str) -> dict[str, Interface]:
    """Parse the output of ``ip -o link show`` and then ``ip -4 -o addr show``; return interface name → `Interface`."""
    interfaces: dict[str, Interface] = {}
    for match in re.finditer(r"^\d+: (\S+?)(?:@\S+)?: <([^>]*)>", text, re.MULTILINE):
        interfaces[match[1]] = Interface(match[1], "", "UP" in match[2].split(","))
    for match in re.finditer(r"^\d+: (\S+)\s+inet (?:addr:)?([\d.]+)", text, re.MULTILINE):
        name = match[1].partition("@")[0]
        old = interfaces.get(name, Interface(name, "", up=True))
        if not old.address:
            interfaces[name] = Interface(name, match[2], old.up)
    return interfaces


def choose(interfaces: Mapping[str, Interface], named: Mapping[str, str]) -> dict[str, str]:
    """Map mplab's interface names to the phone's: ``{"wlan0": "wlan0", "rmnet0": "rmnet_data2"}``.

    Args:
        interfaces: interfaces of the phone by name.
        named: path (``wifi``, ``lte``) → interface set in the lab file.

    Returns:
        Mapping without the paths for which no interface was set or found. Among several interfaces for a path, those
        with an address come first, then those that are up, then the first by name.
    """
    chosen = {}
    for path, role in INTERFACES.items():
        if path in named:
            chosen[role] = named[path]
            continue
        fitting = [interface for interface in interfaces.values() if _NAMES[path].fullmatch(interface.name)]
        # A phone's IMS has a separate interface, often rmnet_data0, with only IPv6.
        fitting.sort(key=lambda one: (not one.address, not one.up, one.name))
        if fitting:
            chosen[role] = fitting[0].name
    return chosen
