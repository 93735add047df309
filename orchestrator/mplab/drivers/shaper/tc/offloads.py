"""Offloads that put packets together (TSO, GSO, GRO, LRO): netem would delay and lose such a packet as one.

A machine joins packets that it sends itself at the shaped interface, and those that it forwards where it receives them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mplab.drivers.shaper.tc.shell import quote

_SENT = {"tcp-segmentation-offload": "tso", "generic-segmentation-offload": "gso"}
_RECEIVED = {"generic-receive-offload": "gro", "large-receive-offload": "lro"}
"""What `ethtool -k` calls it: what `ethtool -K` does."""
_FIXED = "fixed"

SHOW = r"""
command -v ethtool >/dev/null || { echo none; return 0; }
[ $# != 0 ] || set -- $(ls /sys/class/net)
for device in "$@"; do
	ethtool -k "$device" 2>/dev/null |
		sed -n -e "s/^\\([a-z-]*\\): on\$/$device \\1/p" -e "s/^\\([a-z-]*\\): on \\[fixed\\]\$/$device \\1 fixed/p"
done
"""
"""A script; its arguments are interfaces, none: all there are."""


@dataclass(frozen=True)
class Offloads:
    """What puts packets together now.

    Attributes:
        known: there is `ethtool`, so that the rest is known.
        on: interface → what can be switched off.
        fixed: interface → what cannot.
    """

    known: bool
    on: Mapping[str, Sequence[str]]
    fixed: Mapping[str, Sequence[str]]

    def warnings(self, *, openwrt: bool) -> list[str]:
        """What will stay put together."""
        if not self.known:
            remedy = ". Install it: opkg install ethtool (or: apk add ethtool)" if openwrt else ""
            return [f"no ethtool: packets that its kernel puts together (GRO) are delayed and lost as one{remedy}"]
        return [
            f"{device}: {', '.join(names)} cannot be switched off: packets that it puts together are delayed and lost "
            "as one"
            for device, names in self.fixed.items()
        ]

    def switch(self) -> tuple[str, str]:
        """Two shell scripts: one that switches everything in `on` on again, one that switches it off."""
        pairs = [(quote(device), name) for device, names in self.on.items() for name in names]
        # An interface that is gone (a radio that is off) comes back with its own defaults.
        back = [
            f"[ ! -e /sys/class/net/{device} ] || ethtool -K {device} {name} on || failed=1" for device, name in pairs
        ]
        change = [f"ethtool -K {device} {name} off >/dev/null || return 1" for device, name in pairs]
        return "\n".join(["failed=0", *back, "[ $failed = 0 ]\n"]), "\n".join(change)


def parse_offloads(shown: str, shaped: Collection[str]) -> Offloads:
    """Read what `SHOW` prints: lines ``eth0 generic-receive-offload``.

    Args:
        shown: its output.
        shaped: interfaces that are shaped. Of others only what they receive matters.
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
