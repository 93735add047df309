"""Route the traffic of a rooted phone: default route, one table per interface; block IPv6 and QUIC."""

import re
import shlex
from typing import TYPE_CHECKING

from mplab.base.errors import DeviceError
from mplab.base.paths import INTERFACES
from mplab.drivers.phone.routes import accept_system_udp

if TYPE_CHECKING:
    from mplab.drivers.phone.adb.phone import AdbPhone

# Android's own rules (netd) begin at priority 10000; these take precedence.
_BY_SOURCE, _DEFAULT = 8900, 9000
_QUIC_PORT = 443
_IPV6_UNDO = """
while ip6tables -w -D OUTPUT -j mplab 2>/dev/null; do :; done
{ ip6tables -w -F mplab; ip6tables -w -X mplab; } 2>/dev/null
true
"""
_IPV6_RULES = f"""{_IPV6_UNDO}
set -e
ip6tables -w -N mplab
ip6tables -w -A mplab -o lo -j RETURN
ip6tables -w -A mplab -p udp --sport 546 --dport 547 -j RETURN
{accept_system_udp("ip6tables")}
ip6tables -w -A mplab -p tcp -j REJECT --reject-with tcp-reset
ip6tables -w -A mplab -p udp -j REJECT --reject-with icmp6-port-unreachable
ip6tables -w -I OUTPUT -j mplab
"""
_ANYWHERE = "203.0.113.1"
"""Address in TEST-NET-3 (RFC 5737) for route lookups; no packet is sent to it."""


class Routing:
    """Routing of one phone; all changes are undone when the phone is released.

    Raises:
        DeviceError: (from every method that changes something) the phone is not rooted, or a command failed.
    """

    def __init__(self, phone: "AdbPhone") -> None:
        self._phone = phone
        self._default_kept = False

    def set_default(self, path: str) -> None:
        """Route new connections over `path` (``wifi``, ``lte``).

        Connections that are bound to the address of an interface use this interface instead.

        Raises:
            DeviceError: the path has no default route, or the phone did not apply the change.
        """
        self._needs_root("the default route")
        tables = {role: self._table(device) for role, device in self._phone.devices.items()}
        role = INTERFACES[path]
        if not tables.get(role):
            raise DeviceError(self._phone.label, f"{path} has no default route. Is its interface up?")
        undo = "".join(f"while ip rule del priority {n} 2>/dev/null; do :; done\n" for n in (_BY_SOURCE, _DEFAULT))
        if not self._default_kept:
            self._phone.register(f"{self._phone.label}: default route", undo + "true")
            self._default_kept = True
        rules = [
            f"ip rule add from {address} lookup {tables[other]} priority {_BY_SOURCE}\n"
            for other, address in self._phone.interfaces.items()
            if tables.get(other)
        ]
        rule = f"ip rule add from all lookup {tables[role]} priority {_DEFAULT}\n"
        self._phone.script(f"{undo}set -e\n{''.join(rules)}{rule}")
        device = self._phone.devices[role]
        if (current := self.default_device()) != device:
            raise DeviceError(
                self._phone.label, f"the default route uses {current or 'no interface'}, {device} was requested"
            )

    def default_device(self) -> str:
        """Return the phone's name of the interface that new connections use; "" when there is no default route."""
        route = self._phone.script(f"ip route get {_ANYWHERE}", check=False).stdout
        match = re.search(r"\bdev (\S+)", route)
        return match[1] if match else ""

    def stop_ipv6(self) -> None:
        """Reject TCP and UDP over IPv6 on the phone, so that apps switch to IPv4 at once.

        Interfaces keep their IPv6 addresses: Android would leave a network that loses them, and enable IPv6 again. A
        cellular network with only IPv6 (464XLAT) also needs them for IPv4.
        """
        self._needs_root("IPv6")
        if self._phone.script("[ -e /proc/net/if_inet6 ]", check=False).exit_code != 0:
            return  # a kernel without IPv6
        self._phone.register(f"{self._phone.label}: IPv6", _IPV6_UNDO)
        self._phone.script(_IPV6_RULES)

    def ipv6_open(self) -> bool:
        """Return True when apps can send over IPv6: a global address exists, and no rule rejects TCP and UDP."""
        if not self._phone.link.run("ip -6 -o addr show scope global").stdout.strip():
            return False
        return not self._phone.rooted or not self._refuses_ipv6()

    def _refuses_ipv6(self) -> bool:
        return self._phone.script("ip6tables -w -C OUTPUT -j mplab", check=False).exit_code == 0

    def stop_quic(self) -> None:
        """Reject QUIC (443/udp) on the phone, so that apps switch to TCP at once.

        Raises:
            DeviceError: the phone is not rooted, or QUIC is still possible afterwards.
        """
        self._needs_root("QUIC")
        if not self.quic_open():
            return
        rules = [f"{program} {{}} OUTPUT {_rule(program)}" for program in ("iptables", "ip6tables")]
        undo = "".join(f"{rule.format('-w -D')} 2>/dev/null\n" for rule in rules)
        self._phone.register(f"{self._phone.label}: QUIC", undo + "true")
        self._phone.script("set -e\n" + "".join(f"{rule.format('-w -I')}\n" for rule in rules))
        if self.quic_open():
            raise DeviceError(self._phone.label, "QUIC is open although it was blocked")

    def quic_open(self) -> bool:
        """Return True unless rules reject QUIC. Always True without root, because rules can be neither read nor set."""
        if not self._phone.rooted:
            return True
        checks = [f"{program} -w -C OUTPUT {_rule(program)}" for program in ("iptables", "ip6tables")]
        return self._phone.script(" && ".join(checks), check=False).exit_code != 0

    def _table(self, device: str) -> str:
        """Return the routing table that has a default route over the interface `device`; "" when there is none."""
        text = self._phone.script(f"ip -4 route show table all dev {shlex.quote(device)}", check=False).stdout
        tables = re.findall(r"^default\b.*?\btable (\S+)", text, re.MULTILINE)
        return str(tables[0]) if tables else ""

    def _needs_root(self, feature: str) -> None:
        if not self._phone.rooted:
            raise DeviceError(self._phone.label, f"{feature} can be changed only on a rooted phone")


def _rule(program: str) -> str:
    reject = "icmp-port-unreachable" if program == "iptables" else "icmp6-port-unreachable"
    return f"-p udp --dport {_QUIC_PORT} -j REJECT --reject-with {reject}"
