"""Disable offloads that join packets (TSO, GSO, GRO, LRO): netem would delay and lose the joined packet as one.

A machine joins packets that it sends itself at the shaped interface, and forwarded packets at the interface that
receives them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mplab.drivers.shaper.tc.shell import quote

_SENT = {"tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso"}
_RECEIVED = {"generic-receive-offload": "gro", "large-receive-offload": "lro"}
"""Feature name in `ethtool -k` → name for `ethtool -K`."""
_FIXED = "fixed"

SHOW = r"""
command -v ethtool >/dev/null || { echo none; return 0; }
[ $# != 0 ] || set -- $(ls /sys/class/net)
for device in "$@"; do
	ethtool -k "$device" 2>/dev/null |
		sed -n -e "s/^\\([a-z-]*\\): on\$/$device \\1/p" -e "s/^\\([a-z-]*\\): on \\[fixed\\]\$/$device \\1 fixed/p"
done
"""
"""Script that lists enabled offloads. Its arguments are interfaces; without arguments, it lists all interfaces."""


@dataclass(frozen=True)
class Offloads:
    """Offloads of a machine that join packets and are enabled.

    Attributes:
        known: the machine has `ethtool`; False: the other fields are empty and mean nothing.
        on: interface → enabled offloads that can be disabled.
        fixed: interface → enabled offloads that cannot be disabled.
    """

    known: bool
    on: Mapping[str, Sequence[str]]
    fixed: Mapping[str, Sequence[str]]

    def warnings(self, *, openwrt: bool) -> list[str]:
        """Return warnings about offloads that cannot be disabled, or one warning that `ethtool` is missing."""
        if not self.known:
            remedy = ". Install it: opkg install ethtool (or: apk add ethtool)" if openwrt else ""
            return [f"no ethtool: packets that the kernel joins (GRO) are delayed and lost as one{remedy}"]
        return [
            f"{device}: {', '.join(names)} cannot be switched off: packets that it joins are delayed and lost as one"
            for device, names in self.fixed.items()
        ]

    def switch(self) -> tuple[str, str]:
        """Return two shell scripts: the first enables the offloads in `on` again, the second disables them."""
        pairs = [(quote(device), name) for device, names in self.on.items() for name in names]
        # An interface that does not exist now (a disabled radio) returns with its own defaults.
        back = [
            f"[ ! -e /sys/class/net/{device} ] || ethtool -K {device} {name} on || failed=1" for device, name in pairs
        ]
        change = [f"ethtool -K {device} {name} off >/dev/null || return 1" for device, name in pairs]
        return "\n".join(["failed=0", *back, "[ $failed = 0 ]\n"]), "\n".join(change)


def parse_offloads(shown: str, shaped: Collection[str]) -> Offloads:
    """Parse the output of the script `SHOW`: lines ``eth0 generic-receive-offload``.

    Args:
        shown: output of the script.
        shaped: shaped interfaces. For other interfaces, only receive offloads (GRO, LRO) count.
    """
    on: dict[str, list[str]] = {}
    fixed: dict[str, list[str]] = {}
    for line in shown.splitlines():
        device, _, rest = line.partition(" ")
        feature, _, state = rest.partition(" ")
        meant = {**_RECEIVED, **(_SENT if device in shaped else {})}
        if device != "lo" and feature in meant:
            (fixed if state == _FIXED else on).setdefault(device, []).append(meant[feature])
    return Offloads(shown.strip() != "none", on, fixed)
