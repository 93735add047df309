"""Where a rooted phone's packets go: default route, one table for each interface, no IPv6, QUIC or not."""

import re
import shlex

from orchestrator.errors import DeviceError
from orchestrator.paths import INTERFACES
from orchestrator.phone.adb.phone import AdbPhone

# Android's own rules (netd) begin at 10000: these go before them.
_BY_SOURCE, _DEFAULT = 8900, 9000
_QUIC_PORT = 443
_ANYWHERE = "203.0.113.1"
"""TEST-NET-3 (RFC 5737): nothing is sent there."""


class Routing:
    """Of one phone; what is changed is changed back when the phone is given back.

    Raises:
        DeviceError: of every method: it is not rooted, or did not do what it was told.
    """

    def __init__(self, phone: AdbPhone) -> None:
        self._phone = phone
        self._default_kept = False

    def set_default(self, path: str) -> None:
        """New connections leave by `path` (``wifi``, ``lte``); those bound to an address leave by its interface."""
        self._needs_root("the default route")
        tables = {role: self._table(device) for role, device in self._phone.devices.items()}
        role = INTERFACES[path]
        if not tables.get(role):
            raise DeviceError(self._phone.label, f"{path} has no default route of its own: is it up?")
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
        if (found := self.default_device()) != device:
            raise DeviceError(
                self._phone.label, f"the default route is by {found or 'nothing'}, {device} was asked for"
            )

    def default_device(self) -> str:
        """What the phone calls the interface by which new connections leave; ""."""
        said = self._phone.script(f"ip route get {_ANYWHERE}", check=False).stdout
        found = re.search(r"\bdev (\S+)", said)
        return found[1] if found else ""

    def stop_ipv6(self) -> None:
        """Switch IPv6 off on every interface there is and will be."""
        self._needs_root("IPv6")
        names = self._phone.script("cd /proc/sys/net/ipv6/conf && grep . */disable_ipv6", check=False).stdout
        before = dict(re.findall(r"^(\S+)/disable_ipv6:(\d)$", names, re.MULTILINE))
        if not before:
            return  # a kernel without it
        back = "".join(
            f"echo {value} > /proc/sys/net/ipv6/conf/{name}/disable_ipv6 2>/dev/null\n"
            for name, value in sorted(before.items(), key=lambda item: item[0] not in {"all", "default"})
        )
        self._phone.register(f"{self._phone.label}: IPv6", back + "true")
        self._phone.script("cd /proc/sys/net/ipv6/conf && for f in */disable_ipv6; do echo 1 > $f || exit 1; done")

    def ipv6_open(self) -> bool:
        """An interface other than ``lo`` has an address of IPv6 that is valid outside."""
        return bool(self._phone.link.run("ip -6 -o addr show scope global").stdout.strip())

    def stop_quic(self) -> None:
        """Have the phone refuse QUIC (443/udp): apps turn to TCP at once."""
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
        """Whether apps can use QUIC. Without root nobody can say, and nothing keeps them from it: True."""
        if not self._phone.rooted:
            return True
        checks = [f"{program} -w -C OUTPUT {_rule(program)}" for program in ("iptables", "ip6tables")]
        return self._phone.script(" && ".join(checks), check=False).exit_code != 0

    def _table(self, device: str) -> str:
        """The table with the interface's own default route; ""."""
        text = self._phone.script(f"ip -4 route show table all dev {shlex.quote(device)}", check=False).stdout
        found = re.findall(r"^default\b.*?\btable (\S+)", text, re.MULTILINE)
        return str(found[0]) if found else ""

    def _needs_root(self, what: str) -> None:
        if not self._phone.rooted:
            raise DeviceError(self._phone.label, f"{what} can be changed on a rooted phone alone")


def _rule(program: str) -> str:
    reject = "icmp-port-unreachable" if program == "iptables" else "icmp6-port-unreachable"
    return f"-p udp --dport {_QUIC_PORT} -j REJECT --reject-with {reject}"
