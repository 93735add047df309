"""What a kernel and its tc can do: found out by trying it on an interface of its own, not by looking at versions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.errors import LabNotReadyError
from orchestrator.shaper.tc.shell import Shell

_SCRIPT = r"""
test=mplabtest0
for path in /sbin/tc /usr/sbin/tc /usr/bin/tc /system/bin/tc /usr/libexec/tc-full /usr/libexec/tc-bpf \
	/usr/libexec/tc-tiny; do
	[ -x $path ] && "$path" -V 2>&1 | grep -q iproute2 && break
	path=
done
echo "tc=$path"
[ -n "$path" ] && echo "tc_version=$("$path" -V 2>&1 | head -n 1)" && echo "tc_real=$(readlink -f "$path")"
echo "boot=$(cat /proc/sys/kernel/random/boot_id)"
for device in "$@"; do [ -d "/sys/class/net/$device" ] || echo "no_interface=$device"; done
for option in flow_offloading flow_offloading_hw; do
	[ "$(uci -q get firewall.@defaults[0].$option 2>/dev/null)" = 1 ] && echo "offload=$option"
done
for device in "$@"; do
	[ -n "$path" ] && $path qdisc show dev "$device" 2>/dev/null | sed "s/^/qdisc_at=$device /"
	echo "type=$device $(cat "/sys/class/net/$device/type" 2>/dev/null)"
done
try() {
	what=$1; shift
	if said=$("$@" 2>&1); then echo "can=$what"; else echo "cannot=$what $(echo "$said" | tr '\n' ' ')"; return 1; fi
}
[ -n "$path" ] || return 0
ip link del $test 2>/dev/null
if try ifb ip link add name $test type ifb; then
	if try htb $path qdisc add dev $test root handle 1: stab overhead -14 linklayer ethernet htb default 1; then
		$path class add dev $test parent 1: classid 1:1 htb rate 1mbit
		if try netem $path qdisc add dev $test parent 1:1 handle 10: netem limit 10 delay 1ms loss 1% rate 10gbit; then
			for queue in bfifo pfifo codel fq_codel cake; do
				try $queue $path qdisc add dev $test parent 10:1 handle 20: $queue &&
					$path qdisc del dev $test parent 10:1 handle 20:
			done
			$path qdisc del dev $test parent 1:1 handle 10:
			try seed $path qdisc add dev $test parent 1:1 handle 10: netem loss 1% seed 1 &&
				$path qdisc del dev $test parent 1:1 handle 10:
			for table in normal pareto paretonormal; do
				try $table $path qdisc add dev $test parent 1:1 handle 10: netem delay 9ms 1ms distribution $table &&
					$path qdisc del dev $test parent 1:1 handle 10:
			done
		fi
		$path qdisc del dev $test root
	fi
	if try clsact $path qdisc add dev $test clsact; then
		try u32 $path filter add dev $test egress protocol ip prio 1 u32 match u32 0 0 flowid 1:1
		try mirred $path filter add dev $test egress protocol ip prio 2 u32 match u32 0 0 \
			action mirred egress redirect dev $test
	fi
	ip link del $test
fi
return 0
"""

_PACKAGES = {
    "ifb": "kmod-ifb",
    "htb": "kmod-sched-core",
    "netem": "kmod-netem",
    "clsact": "kmod-sched-core",
    "u32": "kmod-sched-core",
    "mirred": "kmod-sched-core",
    "codel": "kmod-sched",
    "cake": "kmod-sched-cake",
    "fq_codel": "kmod-sched-core",
    "normal": "tc-full",
    "pareto": "tc-full",
    "paretonormal": "tc-full",
}
_ANY_LINUX = {
    "ifb": "the module ifb",
    "htb": "the module sch_htb",
    "netem": "the module sch_netem",
    "clsact": "the module sch_ingress",
    "u32": "the module cls_u32",
    "mirred": "the module act_mirred",
    **dict.fromkeys(("normal", "pareto", "paretonormal"), "tc's tables of distributions (package iproute2)"),
}
_WHERE_MODULES_ARE = (
    "of its kernel (Debian: in linux-image; Ubuntu: linux-modules-extra-$(uname -r); Fedora, RHEL: "
    "kernel-modules-extra; a phone: another kernel)"
)
_NEEDED = ("ifb", "htb", "netem", "bfifo", "pfifo", "clsact", "u32", "mirred")
_TINY = "tc-tiny"
_ETHERNET = "1"
"""Of /sys/class/net/*/type (ARPHRD_ETHER)."""


@dataclass(frozen=True)
class Capabilities:
    """What was found on a router, server or phone.

    Attributes:
        openwrt: what lacks is said in OpenWrt's packages, and another's `clsact` is refused.
        tc: path of iproute2's tc, or "".
        tc_version: what it calls itself.
        tiny: it is OpenWrt's tc-tiny.
        boot: the kernel's boot id: another one after a reboot.
        can: what works: ``netem``, ``codel``, ``normal`` (a distribution) …
        cannot: what does not, with what the router said.
        offloads: options of the firewall that let packets pass the queues by.
        missing_interfaces: asked for, not there.
        foreign: qdiscs that somebody else has put where ours would go, by interface.
        without_header: interfaces without link layer: packets begin with the IP header.
    """

    openwrt: bool
    tc: str
    tc_version: str
    tiny: bool
    boot: str
    can: frozenset[str]
    cannot: Mapping[str, str]
    offloads: Sequence[str]
    missing_interfaces: Sequence[str]
    foreign: Mapping[str, str]
    without_header: frozenset[str]

    def problems(self) -> Iterator[str]:
        """Why the router cannot shape at all; each says what to install or do."""
        if not self.tc:
            how = "opkg install tc-full (or: apk add tc-full)" if self.openwrt else "the package iproute2"
            yield f"no tc of iproute2 on it: install it: {how}"
            return
        for what in _NEEDED:
            if what in self.cannot:
                yield self.remedy(what)
        for interface in self.missing_interfaces:
            yield f"it has no interface {interface}: see 'ip link' there"
        for interface, qdisc in self.foreign.items():
            if interface not in self.shared:
                yield f"{interface} has a qdisc of somebody else ({qdisc}): switch that off (sqm? qosify?)"

    @property
    def shared(self) -> frozenset[str]:
        """Interfaces with a `clsact` of somebody else, beside whose filters ours can be (Android, Cilium)."""
        if self.openwrt:
            return frozenset()
        return frozenset(interface for interface, qdisc in self.foreign.items() if qdisc.startswith("clsact"))

    def remedy(self, what: str) -> str:
        """Why it cannot do `what`, and what to install."""
        said = self.cannot.get(what, "")
        if not self.openwrt:
            lacking = _ANY_LINUX.get(what, f"the module sch_{what}")
            where = f" {_WHERE_MODULES_ARE}" if "module" in lacking else ""
            return f"no {what}: it needs {lacking}{where}; it said: {said}"
        if self.tiny and ("unknown" in said.lower() or what in {"normal", "pareto", "paretonormal"}):
            return (
                f"tc-tiny has no {what}: install tc-full: opkg install tc-full (or: apk add tc-full); it said: {said}"
            )
        package = _PACKAGES.get(what, "kmod-sched")
        return f"no {what}: install {package}: opkg install {package} (or: apk add {package}); it said: {said}"

    def require(self, name: str, *wanted: str) -> None:
        """Raise LabNotReadyError, naming the router `name`, unless everything in `wanted` works."""
        lacking = [self.remedy(what) for what in wanted if what not in self.can]
        if lacking:
            raise LabNotReadyError(f"{name}: {'; '.join(lacking)}")


def look(shell: Shell, interfaces: Sequence[str], *, openwrt: bool = True) -> Capabilities:
    """Find out what it can do; leaves nothing behind."""
    return parse_capabilities(shell.script(_SCRIPT, *interfaces).stdout, openwrt=openwrt)


def parse_capabilities(text: str, *, openwrt: bool = True) -> Capabilities:
    """Read what the script printed."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        found.setdefault(key, []).append(value.strip())
    first = {key: values[0] for key, values in found.items()}
    cannot = dict(item.partition(" ")[::2] for item in found.get("cannot", ()))
    types = dict(item.partition(" ")[::2] for item in found.get("type", ()))
    return Capabilities(
        openwrt=openwrt,
        tc=first.get("tc", ""),
        tc_version=first.get("tc_version", ""),
        tiny=first.get("tc_real", "").endswith(_TINY),
        boot=first.get("boot", ""),
        can=frozenset(found.get("can", ())),
        cannot=cannot,
        offloads=tuple(found.get("offload", ())),
        missing_interfaces=tuple(found.get("no_interface", ())),
        foreign=_foreign(found.get("qdisc_at", ())),
        without_header=frozenset(name for name, kind in types.items() if kind and kind != _ETHERNET),
    )


def _foreign(lines: Sequence[str]) -> dict[str, str]:
    found = {}
    for line in lines:
        match = re.match(r"(\S+) qdisc ((clsact|ingress) \S+)", line)
        if match:
            found[match[1]] = match[2]
    return found


def wanted_for(directions: Sequence[Mapping[str, object]]) -> list[str]:
    """The names, as in `Capabilities.can`, of what these directions need beyond the usual."""
    wanted = set()
    for direction in directions:
        queue = direction.get("queue")
        if isinstance(queue, Mapping) and (discipline := queue.get("discipline", "drop-tail")) != "drop-tail":
            wanted.add(str(discipline))
        table = direction.get("jitter_distribution", "uniform")
        if direction.get("jitter_ms") and table != "uniform":
            wanted.add(str(table))
    return sorted(wanted)
