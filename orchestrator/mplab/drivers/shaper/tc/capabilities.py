"""Find out, by trials on a test interface, which kinds of shaping a kernel and its tc support; report the results."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mplab.base.errors import LabNotReadyError
from mplab.base.findings import Finding
from mplab.drivers.shaper.tc.shell import Shell, quote
from mplab.format.direction import Direction

_SCRIPT = r"""
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
[ -n "$path" ] || return 0
test=mplabtest0
ip link del $test 2>/dev/null
if said=$(ip link add name $test type ifb 2>&1); then
	echo "can=ifb"
	said=$(echo "$attempts" | "$path" -force -batch - 2>&1)
	case $said in
	*"-:$last") ;;
	*) ip link del $test && ip link add name $test type ifb
		said=$(number=0
			echo "$attempts" | while read -r line; do
				number=$((number + 1))
				"$path" $line 2>&1 || echo "Command failed -:$number"
			done) ;;
	esac
	echo "$said" | sed 's/^/said=/'
	ip link del $test
else
	echo "cannot=ifb $(echo "$said" | tr '\n' ' ')"
fi
return 0
"""


@dataclass(frozen=True)
class _Attempt:
    """A trial of one tc command on the test interface.

    Attributes:
        line: arguments of tc.
        what: name of the ability that exists if the command succeeds; "": the command only prepares or cleans up.
        needs: ability without which the result of this trial is ignored; "": none.
    """

    line: str
    what: str = ""
    needs: str = ""


_HTB = "handle 1: stab overhead -14 linklayer ethernet htb default 1"
_NETEM = "qdisc {} dev mplabtest0 parent 1:1 handle 10:"
_LEAF = "qdisc {} dev mplabtest0 parent 10:1 handle 20:"
_FILTER = "filter add dev mplabtest0 egress protocol ip prio {} u32 match u32 0 0"
_QUEUES = ("bfifo", "pfifo", "codel", "fq_codel", "cake")
_TABLES = ("normal", "pareto", "paretonormal")

_ATTEMPTS = (
    _Attempt(f"qdisc add dev mplabtest0 root {_HTB}", "htb"),
    _Attempt("class add dev mplabtest0 parent 1: classid 1:1 htb rate 1mbit"),
    _Attempt(f"{_NETEM.format('add')} netem limit 10 delay 1ms loss 1% rate 10gbit", "netem", "htb"),
    *(
        attempt
        for queue in _QUEUES
        for attempt in (_Attempt(f"{_LEAF.format('add')} {queue}", queue, "netem"), _Attempt(_LEAF.format("del")))
    ),
    _Attempt(_NETEM.format("del")),
    _Attempt(f"{_NETEM.format('add')} netem loss 1% seed 1", "seed", "netem"),
    _Attempt(_NETEM.format("del")),
    *(
        attempt
        for table in _TABLES
        for attempt in (
            _Attempt(f"{_NETEM.format('add')} netem delay 9ms 1ms distribution {table}", table, "netem"),
            _Attempt(_NETEM.format("del")),
        )
    ),
    _Attempt("qdisc del dev mplabtest0 root"),
    _Attempt("qdisc add dev mplabtest0 clsact", "clsact"),
    _Attempt(f"{_FILTER.format(1)} flowid 1:1", "u32", "clsact"),
    _Attempt(f"{_FILTER.format(2)} action mirred egress redirect dev mplabtest0", "mirred", "clsact"),
    _Attempt("qdisc del dev mplabtest0 root"),  # nothing to delete: this error shows that tc reached the end
)
"""Trials of one tc batch, because tc starts slowly on a small router. If tc aborts the batch, each trial runs alone."""

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
"""Value of /sys/class/net/*/type for Ethernet (ARPHRD_ETHER)."""


@dataclass(frozen=True)
class Capabilities:
    """Abilities of a router, server or phone to shape, and obstacles to shaping on it.

    Attributes:
        openwrt: the machine runs OpenWrt: remedies name OpenWrt packages; a `clsact` of another program is refused.
        tc: path of iproute2's tc on the machine; "": it has none.
        tc_version: output of ``tc -V``.
        tiny: tc is OpenWrt's reduced build tc-tiny.
        boot: the kernel's boot id, which changes with a reboot.
        can: available abilities: ``netem``, ``codel``, ``normal`` (a distribution) …
        cannot: missing ability → output of the failed command.
        offloads: enabled options of OpenWrt's firewall that let packets bypass the queues.
        missing_interfaces: requested interfaces that do not exist.
        foreign: interface → `clsact` or `ingress` qdisc of another program; mplab's filters need this place, too.
        limiting: interface → root qdisc of another program that limits, delays or drops packets.
        without_header: interfaces without link-layer header: packets begin with the IP header.
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
    limiting: Mapping[str, str]
    without_header: frozenset[str]

    def problems(self) -> Iterator[str]:
        """Yield reasons why the machine cannot shape at all, each with a remedy."""
        if not self.tc:
            how = "opkg install tc-full (or: apk add tc-full)" if self.openwrt else "the package iproute2"
            yield f"no tc of iproute2. Install it: {how}"
            return
        for ability in _NEEDED:
            if ability in self.cannot:
                yield self.remedy(ability)
        for interface in self.missing_interfaces:
            yield f"no interface {interface}. Run 'ip link' on the machine to list them"
        for interface, qdisc in self.foreign.items():
            if interface not in self.shared:
                yield f"{interface} has a qdisc of another program ({qdisc}). Switch that program off (sqm? qosify?)"
        for interface, qdisc in self.limiting.items() if self.openwrt else ():
            yield (
                f"{interface} has a root qdisc of another program that shapes ({qdisc}). Switch that program off (sqm?)"
            )

    def warnings(self) -> list[str]:
        """Return one warning for each root qdisc of another program, because it may change the requested conditions.

        On a server or phone, such a qdisc stays; on OpenWrt it is one of the `problems`.
        """
        if self.openwrt:
            return []
        return [f"{interface} has a root qdisc that shapes, too ({text})" for interface, text in self.limiting.items()]

    @property
    def shared(self) -> frozenset[str]:
        """Interfaces with a `clsact` of another program (Android, Cilium), to which mplab can add its own filters."""
        if self.openwrt:
            return frozenset()
        return frozenset(interface for interface, qdisc in self.foreign.items() if qdisc.startswith("clsact"))

    def remedy(self, ability: str) -> str:
        """Return a sentence that says why the machine lacks `ability` and how to install it."""
        output = self.cannot.get(ability, "")
        if not self.openwrt:
            lacking = _ANY_LINUX.get(ability, f"the module sch_{ability}")
            where = f" {_WHERE_MODULES_ARE}" if "module" in lacking else ""
            return f"no {ability}: it needs {lacking}{where}; it said: {output}"
        if self.tiny and ("unknown" in output.lower() or ability in {"normal", "pareto", "paretonormal"}):
            return (
                f"tc-tiny has no {ability}: install tc-full: opkg install tc-full (or: apk add tc-full); "
                f"it said: {output}"
            )
        if ".dist" in output:
            return (
                f"no {ability}: OpenWrt's tc-full brings no tables of distributions: copy them from a Linux computer "
                f"(scp -O /usr/lib/tc/*.dist root@ROUTER:/usr/lib/tc/, after mkdir -p there); it said: {output}"
            )
        package = _PACKAGES.get(ability, "kmod-sched")
        return f"no {ability}: install {package}: opkg install {package} (or: apk add {package}); it said: {output}"

    def require(self, name: str, *wanted: str) -> None:
        """Raise LabNotReadyError unless the machine has all abilities `wanted`; `name` is its name in the message."""
        lacking = [self.remedy(ability) for ability in wanted if ability not in self.can]
        if lacking:
            raise LabNotReadyError(f"{name}: {'; '.join(lacking)}")


def find_capabilities(shell: Shell, interfaces: Sequence[str], *, openwrt: bool = False) -> Capabilities:
    """Find the shaping abilities of a machine by trials, which leave no change on it.

    Args:
        shell: root shell on the machine.
        interfaces: interfaces of the machine that will be shaped.
        openwrt: the machine runs OpenWrt.
    """
    attempts = quote("\n".join(attempt.line for attempt in _ATTEMPTS))
    return parse_capabilities(
        shell.script(f"attempts={attempts} last={len(_ATTEMPTS)}\n{_SCRIPT}", *interfaces).stdout, openwrt=openwrt
    )


def parse_capabilities(text: str, *, openwrt: bool = False) -> Capabilities:
    """Parse the output of `_SCRIPT`: lines ``KEY=VALUE``."""
    values_of: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        values_of.setdefault(key, []).append(value.strip())
    first = {key: values[0] for key, values in values_of.items()}
    works, lacks = _attempted(values_of.get("said", ()))
    cannot = {**dict(item.partition(" ")[::2] for item in values_of.get("cannot", ())), **lacks}
    types = dict(item.partition(" ")[::2] for item in values_of.get("type", ()))
    return Capabilities(
        openwrt=openwrt,
        tc=first.get("tc", ""),
        tc_version=first.get("tc_version", ""),
        tiny=first.get("tc_real", "").endswith(_TINY),
        boot=first.get("boot", ""),
        can=frozenset(values_of.get("can", ())) | works,
        cannot=cannot,
        offloads=tuple(values_of.get("offload", ())),
        missing_interfaces=tuple(values_of.get("no_interface", ())),
        foreign=_foreign(values_of.get("qdisc_at", ())),
        limiting=_limiting(values_of.get("qdisc_at", ())),
        without_header=frozenset(name for name, kind in types.items() if kind and kind != _ETHERNET),
    )


def _attempted(lines: Sequence[str]) -> tuple[frozenset[str], dict[str, str]]:
    """Parse the output of the trials in `_ATTEMPTS`; return available abilities, and missing ability → error of tc."""
    if not lines:
        return frozenset(), {}
    failed: dict[int, str] = {}
    words: list[str] = []
    for line in lines:
        if match := re.fullmatch(r"Command failed \S*:(\d+)", line):
            failed[int(match[1])] = " ".join(words)
            words = []
        else:
            words.append(line)
    works: set[str] = set()
    lacks = {}
    for number, attempt in enumerate(_ATTEMPTS, 1):
        if attempt.needs and attempt.needs not in works:
            continue
        if number in failed:
            lacks[attempt.what] = failed[number]
        elif attempt.what:
            works.add(attempt.what)
    lacks.pop("", None)
    return frozenset(works), lacks


def _foreign(lines: Sequence[str]) -> dict[str, str]:
    qdiscs = {}
    for line in lines:
        match = re.match(r"(\S+) qdisc ((clsact|ingress) \S+)", line)
        if match:
            qdiscs[match[1]] = match[2]
    return qdiscs


_SHAPES = re.compile(
    r"(?P<interface>\S+) qdisc (?P<kind>htb|hfsc|tbf|cbq|netem|cake) \S+ root\b(?: refcnt \d+)?(?P<options>.*)"
)


def _limiting(lines: Sequence[str]) -> dict[str, str]:
    """Return interface → its root qdisc that limits, delays or drops packets, from the output of tc.

    A cake qdisc counts only if it has a bandwidth.
    """
    qdiscs = {}
    for match in filter(None, map(_SHAPES.match, lines)):
        rate = re.search(r"\b(?:bandwidth|rate) (\d\S*)", match["options"])
        if match["kind"] != "cake" or rate:
            qdiscs[match["interface"]] = f"{match['kind']} {rate[1]}" if rate else match["kind"]
    return qdiscs


def wanted_for(directions: Sequence[Direction]) -> list[str]:
    """Return the abilities that `directions` need in addition to those that every condition needs.

    `Capabilities.can` lists the abilities.
    """
    disciplines = {direction.queue.discipline for direction in directions} - {"drop-tail"}
    tables = {direction.distribution for direction in directions if direction.jitter_ms} - {"uniform"}
    return sorted({*disciplines, *tables})


_OPTIONAL = {
    "codel": "queues with CoDel",
    "fq_codel": "queues with FQ-CoDel",
    "cake": "queues with CAKE",
    "normal": "jitter with a normal distribution",
    "pareto": "jitter with a Pareto distribution",
    "paretonormal": "jitter with a Pareto-normal distribution",
}


def check_shaping(capabilities: Capabilities, label: str) -> Iterator[Finding]:
    """Yield findings about the shaping abilities of a machine; `label` is its name in messages."""
    problems = list(capabilities.problems())
    for problem in problems:
        yield Finding(f"{label}: shaping", "missing", problem, "see the message")
    for warning in capabilities.warnings():
        yield Finding(f"{label}: shaping", "warning", warning, "its rate and delay add to the requested ones")
    if not problems:
        tiny = " (tc-tiny)" if capabilities.tiny else ""
        yield Finding(f"{label}: shaping", "ok", f"htb, netem, ifb; {capabilities.tc_version}{tiny}")
    for name, purpose in _OPTIONAL.items():
        if capabilities.tc and name not in capabilities.can and "netem" in capabilities.can:
            yield Finding(f"{label}: {name}", "warning", f"no {purpose}", capabilities.remedy(name))
