"""From a link condition to traffic control: one `htb` class, a `netem` leaf in it, and the queue below.

Each direction of each phone has an `ifb` device of its own, to which filters at an interface send its packets, in both
directions (on a router or server towards the phone at egress, from it at ingress; on the phone itself the other way)::

    packets of the phone → filter → ifb: htb (rate) → netem (loss, delay, …) → queue (bfifo, pfifo, codel, …) → on

`netem` holds a packet until its delay is over and then hands it to the queue, from which `htb` takes it at the rate.
So the queue has exactly the length that was asked for: what is under way does not count, as it would if netem's
own `limit` were the queue. What lies at the interface itself (its own qdisc, other stations) is not touched.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mplab.base.errors import LabNotReadyError

Direction = Mapping[str, Any]
"""One direction as linkem takes it (docs/linkem.md)."""

FULL_PACKET_BYTES = 1500
UNLIMITED_KBPS = 10_000_000
"""Of an htb class without a limit: more than anything here forwards."""

ETHERNET_HEADER_BYTES = 14
_FRAME_BYTES = FULL_PACKET_BYTES + ETHERNET_HEADER_BYTES
_LEAST_BURST_MS, _MOST_BURST_MS = 1.0, 10.0
"""What htb may send at once, as time at the rate: enough that a late timer costs no rate; two packets otherwise,
but not so much that a slow link is quick for a moment."""

_SMALLEST_QUEUE_PACKETS = 10
_LEAST_IN_FLIGHT = 1000
_IN_FLIGHT_FACTOR = 4
"""netem's `limit`, packets, in bandwidth-delay products: what bursts bring is dropped by the queue, not by it."""

_ORDERING_RATE = "10gbit"
"""netem keeps packets in order when it has a rate, jitter or not; this one is too high to be felt (1.2 µs a packet)."""

_KNOWN = {
    "rate_kbps", "delay_ms", "jitter_ms", "jitter_distribution", "loss_percent", "loss_model", "reorder_percent",
    "duplicate_percent", "queue",
}  # fmt: skip
_DISTRIBUTIONS = ("uniform", "normal", "pareto", "paretonormal")
_MEMORY_BYTES_PER_PACKET = 2048


@dataclass(frozen=True)
class Selector:
    """Whose packets are shaped at an interface: those of one address, or all.

    Attributes:
        interface: of the router or server, towards the phone; or of the phone.
        mac: ``aa:bb:cc:dd:ee:ff``, or "".
        ip: IPv4 or IPv6 address, or "".
        at_phone: the interface is the phone's own: what leaves there comes from it.
    """

    interface: str
    mac: str = ""
    ip: str = ""
    at_phone: bool = False

    def __str__(self) -> str:
        """``10.0.0.2 at phy0-ap0``."""
        return f"{self.mac or self.ip or 'everything'} at {self.interface}"


def check_possible(direction: Direction, what: str) -> None:
    """Refuse what traffic control cannot do.

    Raises:
        LabNotReadyError: the message names `what`, the field, and what can.
    """
    if direction.get("trace"):
        raise LabNotReadyError(
            f"{what}: a packet-delivery trace cannot be replayed by the kernel's traffic control: use the virtual "
            "lab, or a rate"
        )
    foreign = sorted(set(direction) - _KNOWN - {"trace"})
    if foreign:
        raise LabNotReadyError(f"{what}: traffic control does not know {', '.join(foreign)}")
    if direction.get("jitter_distribution", "uniform") not in _DISTRIBUTIONS:
        allowed = ", ".join(_DISTRIBUTIONS)
        raise LabNotReadyError(f"{what}: jitter {direction['jitter_distribution']!r}: netem has {allowed}")
    if direction.get("reorder_percent") and not direction.get("delay_ms"):
        raise LabNotReadyError(f"{what}: packets can overtake only where there is a delay")


def netem_options(direction: Direction, seed: int | None = None) -> str:
    """The parameters of the netem qdisc, as tc takes them; `seed` only where kernel and tc take one (Linux 6.7)."""
    delay, jitter = direction.get("delay_ms", 0.0), direction.get("jitter_ms", 0.0)
    parts = [f"limit {in_flight_packets(direction)}"]
    if delay or jitter:
        parts.append(f"delay {_ms(delay)}")
    if jitter:
        parts.append(_ms(jitter))
        if (name := direction.get("jitter_distribution", "uniform")) != "uniform":
            parts.append(f"distribution {name}")
    if model := direction.get("loss_model"):
        values = (model["p_percent"], model["r_percent"])
        states = (model.get("bad_loss_percent", 100.0), model.get("good_loss_percent", 0.0))
        parts.append("loss gemodel " + " ".join(f"{value:g}%" for value in (*values, *states)))
    elif loss := direction.get("loss_percent"):
        parts.append(f"loss {loss:g}%")
    if duplicate := direction.get("duplicate_percent"):
        parts.append(f"duplicate {duplicate:g}%")
    if reorder := direction.get("reorder_percent"):
        parts.append(f"reorder {reorder:g}%")
    parts.append(f"rate {_ORDERING_RATE}")
    return " ".join(parts if seed is None else [*parts, f"seed {seed}"])


def in_flight_packets(direction: Direction) -> int:
    """netem's `limit`: how many packets may be under way, from the bandwidth-delay product in full packets."""
    rate: float = direction.get("rate_kbps") or 1_000_000
    time_ms: float = direction.get("delay_ms", 0.0) + 3 * direction.get("jitter_ms", 0.0)
    product = rate * time_ms / 8 / FULL_PACKET_BYTES
    return max(_LEAST_IN_FLIGHT, math.ceil(_IN_FLIGHT_FACTOR * product))


def queue_options(direction: Direction) -> str:
    """The qdisc below netem: what waits for the rate.

    Without a queue in `direction`, a drop-tail one of one bandwidth-delay product (round trip: twice the delay), at
    least 10 packets.
    """
    queue = direction.get("queue") or {}
    rate = direction.get("rate_kbps") or UNLIMITED_KBPS
    discipline = queue.get("discipline", "drop-tail")
    if "bytes" in queue:
        if discipline == "drop-tail":
            return f"bfifo limit {queue['bytes']}"
        packets = max(1, math.ceil(queue["bytes"] / FULL_PACKET_BYTES))
    elif "packets" in queue:
        packets = queue["packets"]
    else:
        product = rate * 2 * direction.get("delay_ms", 0.0) / 8 / FULL_PACKET_BYTES
        packets = max(_SMALLEST_QUEUE_PACKETS, math.ceil(product))
    match discipline:
        case "drop-tail":
            return f"pfifo limit {packets}"
        case "codel" | "fq_codel":
            aim, interval = queue.get("target_ms", 5.0), queue.get("interval_ms", 100.0)
            return f"{discipline} limit {packets} target {_ms(aim)} interval {_ms(interval)}"
        case "cake":
            return f"cake unlimited memlimit {packets * _MEMORY_BYTES_PER_PACKET}"
        case _:
            raise LabNotReadyError(
                f"queue discipline {discipline!r}: traffic control has drop-tail, codel, fq_codel, cake"
            )


def class_options(direction: Direction) -> str:
    """The parameters of the htb class."""
    rate = direction.get("rate_kbps") or UNLIMITED_KBPS
    least, most = (rate * time_ms / 8 for time_ms in (_LEAST_BURST_MS, _MOST_BURST_MS))
    burst = max(round(least), min(2 * _FRAME_BYTES, round(most)))
    bits = round(rate * 1000)
    return f"rate {bits}bit ceil {bits}bit burst {burst} cburst {burst} quantum {_FRAME_BYTES}"


def build_lines(
    device: str, direction: Direction, seed: int | None = None, *, header_bytes: int = ETHERNET_HEADER_BYTES
) -> list[str]:
    """What `tc -batch` needs to shape an ifb device that has nothing yet. Rates count IP bytes.

    Args:
        device: the ifb device.
        direction: what it shall be.
        seed: of netem's chance; None: the kernel's.
        header_bytes: before the IP header; 0 at an interface without link layer (a phone's `rmnet_data0`).
    """
    stab = f"stab overhead -{header_bytes} linklayer ethernet " if header_bytes else ""
    return [
        f"qdisc add dev {device} root handle 1: {stab}htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb {class_options(direction)}",
        f"qdisc add dev {device} parent 1:1 handle 10: netem {netem_options(direction, seed)}",
        f"qdisc add dev {device} parent 10:1 handle 20: {queue_options(direction)}",
    ]


def change_lines(device: str, before: Direction, after: Direction, seed: int | None = None) -> list[str]:
    """What `tc -batch` needs to go from one condition to another.

    Packets under way and waiting stay, but where the discipline of the queue changes (what waits is lost), and where
    the distribution of the jitter does (netem cannot forget a table: it is made anew, and what is in it is lost).
    """
    lines = [f"class change dev {device} parent 1: classid 1:1 htb {class_options(after)}"]
    old, new = queue_options(before), queue_options(after)
    if _table(before) != _table(after):
        return [
            *lines,
            f"qdisc del dev {device} parent 1:1 handle 10:",
            f"qdisc add dev {device} parent 1:1 handle 10: netem {netem_options(after, seed)}",
            f"qdisc add dev {device} parent 10:1 handle 20: {new}",
        ]
    lines.append(f"qdisc change dev {device} parent 1:1 handle 10: netem {netem_options(after, seed)}")
    if old.split()[0] == new.split()[0]:
        lines.append(f"qdisc change dev {device} parent 10:1 handle 20: {new}")
    else:
        lines += [
            f"qdisc del dev {device} parent 10:1 handle 20:",
            f"qdisc add dev {device} parent 10:1 handle 20: {new}",
        ]
    return lines


def _table(direction: Direction) -> str:
    return str(direction.get("jitter_distribution", "uniform")) if direction.get("jitter_ms") else "uniform"


def filter_lines(selector: Selector, number: int, up: str, down: str, *, first: int = 1) -> list[str]:
    """What sends the packets of `selector` to its ifb devices; ARP and other non-IP frames are left alone.

    Args:
        selector: whose packets.
        number: of the phone here, from 0: filters of different phones have different priorities.
        up: ifb device of what comes from the phone.
        down: ifb device of what goes to it.
        first: lowest priority number that is ours.
    """
    lines = []
    ways = ("egress", "ingress") if selector.at_phone else ("ingress", "egress")
    for way, ifb in zip(ways, (up, down), strict=True):
        for protocol, prio in zip(_protocols(selector), priorities(number, first), strict=False):
            lines.append(
                f"filter add dev {selector.interface} {way} protocol {protocol} prio {prio} u32 "
                f"{_match(selector, way, protocol)} action mirred egress redirect dev {ifb}"
            )
    return lines


def priorities(number: int, first: int = 1) -> tuple[int, int]:
    """Of the filters of one phone: filters of different protocols cannot share one."""
    return first + 2 * number, first + 2 * number + 1


def _protocols(selector: Selector) -> Sequence[str]:
    if selector.ip:
        return ("ipv6",) if ":" in selector.ip else ("ip",)
    return ("ip", "ipv6")


def _match(selector: Selector, way: str, protocol: str) -> str:
    if selector.ip:
        family, bits = ("ip6", 128) if protocol == "ipv6" else ("ip", 32)
        return f"match {family} {'src' if way == 'ingress' else 'dst'} {selector.ip}/{bits}"
    if selector.mac:
        digits = selector.mac.replace(":", "")
        if way == "ingress":  # source address: from 8 bytes before the IP header; 4 bytes at a multiple of 4
            return f"match u32 0x{digits[:8]} 0xffffffff at -8 match u16 0x{digits[8:]} 0xffff at -4"
        return f"match u16 0x{digits[:4]} 0xffff at -14 match u32 0x{digits[4:]} 0xffffffff at -12"
    return "match u32 0 0"


def _ms(value: float) -> str:
    return f"{round(value * 1000)}us"
