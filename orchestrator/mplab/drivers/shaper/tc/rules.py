"""Translate a link condition into traffic control: one `htb` class, a `netem` leaf in it, and the queue below.

Each direction of each path has its own `ifb` device. Filters at the shaped interface send the packets to these devices.
On a router or server, packets towards the phone are filtered at egress, packets from the phone at ingress. On the phone
itself, it is the other way round::

    packets of the phone → filter → ifb: htb (rate) → netem (loss, delay, …) → queue (bfifo, pfifo, codel, …) → on

`netem` holds a packet until its delay is over and then passes it to the queue, from which `htb` sends at the rate.
Therefore the queue has exactly the requested length. If netem's own `limit` were the queue, packets in flight would
count, too. The interface's own qdisc is not changed.
"""

import math
from collections.abc import Sequence

from mplab.base.errors import LabNotReadyError
from mplab.drivers.shaper.protocol import PacketSelector
from mplab.format.direction import CONTROLLED, Direction, GilbertElliott, Queue

FULL_PACKET_BYTES = 1500
UNLIMITED_KBPS = 10_000_000
"""Rate of the htb class if no rate is requested, kbit/s; higher than any of these machines forwards."""

ETHERNET_HEADER_BYTES = 14
_FRAME_BYTES = FULL_PACKET_BYTES + ETHERNET_HEADER_BYTES
_LEAST_BURST_MS, _MOST_BURST_MS = 1.0, 10.0
"""Bounds of htb's burst, as time at the rate, ms.

The burst is the larger of 1 ms and two packets, so that a late timer does not reduce the rate. The two packets are cut
to 10 ms, so that a slow link is never fast for a moment."""

_LEAST_IN_FLIGHT = 1000
_IN_FLIGHT_KBPS = 1_000_000
"""Assumed rate of a direction without a requested rate, for netem's `limit`, kbit/s."""
_IN_FLIGHT_FACTOR = 4
"""netem's `limit` as a multiple of the bandwidth-delay product: so high that the queue, not netem, drops bursts."""

_ORDERING_RATE = "10gbit"
"""Rate of netem, because netem with a rate keeps packets in order despite jitter. It adds only 1.2 µs a packet."""

_MEMORY_BYTES_PER_PACKET = 2048


def check_possible(direction: Direction, path: str) -> None:
    """Raise LabNotReadyError for a condition that traffic control cannot apply.

    Raises:
        LabNotReadyError: the direction has a trace or a middlebox, or reorders packets without a delay. `path` begins
            the message.
    """
    if direction.trace is not None:
        raise LabNotReadyError(
            f"{path}: a packet-delivery trace cannot be replayed by the kernel's traffic control: use the virtual "
            "lab, or a rate"
        )
    if direction.middlebox != "none":
        raise LabNotReadyError(f"{path}: traffic control has no middlebox {direction.middlebox}: use the virtual lab")
    if direction.reorder_percent and not direction.delay_ms:
        raise LabNotReadyError(f"{path}: packets can overtake only where there is a delay")


def netem_options(direction: Direction, seed: int | None = None) -> str:
    """Return netem's parameters in tc's form. Pass `seed` only where kernel and tc support it (Linux 6.7)."""
    parts = [f"limit {in_flight_packets(direction)}"]
    if direction.delay_ms or direction.jitter_ms:
        parts.append(f"delay {_ms(direction.delay_ms)}")
    if direction.jitter_ms:
        parts.append(_ms(direction.jitter_ms))
        if direction.distribution != "uniform":
            parts.append(f"distribution {direction.distribution}")
    parts += _loss_options(direction)
    if direction.duplicate_percent:
        parts.append(f"duplicate {direction.duplicate_percent:g}%")
    if direction.reorder_percent:
        parts.append(f"reorder {direction.reorder_percent:g}%")
    parts.append(f"rate {_ORDERING_RATE}")
    return " ".join(parts if seed is None else [*parts, f"seed {seed}"])


def _loss_options(direction: Direction) -> list[str]:
    loss = direction.loss
    if isinstance(loss, GilbertElliott):
        values = (loss.p_percent, loss.r_percent, loss.bad_loss_percent, loss.good_loss_percent)
        return ["loss gemodel " + " ".join(f"{value:g}%" for value in values)]
    return [f"loss {loss:g}%"] if loss else []


def in_flight_packets(direction: Direction) -> int:
    """Return netem's `limit`, the maximum packets in flight: 4 times the bandwidth-delay product, at least 1000."""
    rate_kbps = direction.rate_kbps or _IN_FLIGHT_KBPS
    time_ms = direction.delay_ms + 3 * direction.jitter_ms
    product = rate_kbps * time_ms / 8 / FULL_PACKET_BYTES
    return max(_LEAST_IN_FLIGHT, math.ceil(_IN_FLIGHT_FACTOR * product))


def queue_options(queue: Queue) -> str:
    """Return kind and parameters, in tc's form, of the qdisc below netem, in which packets wait for the rate limit."""
    if queue.unit == "bytes" and queue.discipline == "drop-tail":
        return f"bfifo limit {queue.length}"
    packets = queue.length if queue.unit == "packets" else max(1, math.ceil(queue.length / FULL_PACKET_BYTES))
    if queue.discipline in CONTROLLED:
        times = f"target {_ms(queue.target_ms)} interval {_ms(queue.interval_ms)}"
        return f"{queue.discipline} limit {packets} {times}"
    if queue.discipline == "cake":
        return f"cake unlimited memlimit {packets * _MEMORY_BYTES_PER_PACKET}"
    return f"pfifo limit {packets}"


def rate_kbps(direction: Direction) -> float:
    """Return the rate of the htb class, kbit/s: the requested rate, or `UNLIMITED_KBPS`."""
    return direction.rate_kbps or UNLIMITED_KBPS


def class_options(direction: Direction) -> str:
    """Return the parameters of the htb class in tc's form: rate, ceiling, bursts and quantum."""
    rate = rate_kbps(direction)
    least, most = (rate * time_ms / 8 for time_ms in (_LEAST_BURST_MS, _MOST_BURST_MS))
    burst = max(round(least), min(2 * _FRAME_BYTES, round(most)))
    bits = round(rate * 1000)
    return f"rate {bits}bit ceil {bits}bit burst {burst} cburst {burst} quantum {_FRAME_BYTES}"


def build_lines(
    device: str, direction: Direction, seed: int | None = None, *, header_bytes: int = ETHERNET_HEADER_BYTES
) -> list[str]:
    """Return the lines of `tc -batch` that shape a new ifb device. Rates count IP bytes.

    Args:
        device: the ifb device.
        direction: condition to apply.
        seed: seed of netem's random numbers; None: the kernel chooses one.
        header_bytes: length of the link-layer header; 0 if the interface has none (a phone's `rmnet_data0`).
    """
    stab = f"stab overhead -{header_bytes} linklayer ethernet " if header_bytes else ""
    return [
        f"qdisc add dev {device} root handle 1: {stab}htb default 1",
        f"class add dev {device} parent 1: classid 1:1 htb {class_options(direction)}",
        f"qdisc add dev {device} parent 1:1 handle 10: netem {netem_options(direction, seed)}",
        f"qdisc add dev {device} parent 10:1 handle 20: {queue_options(direction.queue)}",
    ]


def change_lines(device: str, before: Direction, after: Direction, seed: int | None = None) -> list[str]:
    """Return the lines of `tc -batch` that change one condition to another.

    Packets in flight and in the queue stay, with two exceptions. A new queue discipline loses the packets in the
    queue. A new jitter distribution loses all packets, because netem cannot remove its distribution table and
    is made again.
    """
    lines = [f"class change dev {device} parent 1: classid 1:1 htb {class_options(after)}"]
    old, new = queue_options(before.queue), queue_options(after.queue)
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
    return direction.distribution if direction.jitter_ms else "uniform"


def filter_lines(selector: PacketSelector, number: int, up: str, down: str, *, first: int = 1) -> list[str]:
    """Return the lines of `tc -batch` that add filters, which send a path's packets to its ifb devices.

    The filters ignore ARP and other non-IP frames.

    Args:
        selector: packets to shape.
        number: number of the path on the machine, from 0; it determines the priorities of the filters.
        up: ifb device for packets from the phone.
        down: ifb device for packets to the phone.
        first: lowest priority number used by mplab.
    """
    lines = []
    hooks = ("egress", "ingress") if selector.at_phone else ("ingress", "egress")
    for hook, ifb in zip(hooks, (up, down), strict=True):
        for protocol, prio in zip(_protocols(selector), priorities(number, first), strict=False):
            lines.append(
                f"filter add dev {selector.interface} {hook} protocol {protocol} prio {prio} u32 "
                f"{_match(selector, hook, protocol)} action mirred egress redirect dev {ifb}"
            )
    return lines


def priorities(number: int, first: int = 1) -> tuple[int, int]:
    """Return two priorities for the filters of one path, because filters for IPv4 and for IPv6 cannot share a priority.

    Args:
        number: number of the path on the machine, from 0.
        first: lowest priority number used by mplab.
    """
    return first + 2 * number, first + 2 * number + 1


def _protocols(selector: PacketSelector) -> Sequence[str]:
    if selector.ip:
        return ("ipv6",) if ":" in selector.ip else ("ip",)
    return ("ip", "ipv6")


def _match(selector: PacketSelector, hook: str, protocol: str) -> str:
    if selector.ip:
        family, bits = ("ip6", 128) if protocol == "ipv6" else ("ip", 32)
        return f"match {family} {'src' if hook == 'ingress' else 'dst'} {selector.ip}/{bits}"
    if selector.mac:
        digits = selector.mac.replace(":", "")
        if hook == "ingress":  # source address, 8 bytes before the IP header; u32 matches at multiples of 4 bytes
            return f"match u32 0x{digits[:8]} 0xffffffff at -8 match u16 0x{digits[8:]} 0xffff at -4"
        return f"match u16 0x{digits[:4]} 0xffff at -14 match u32 0x{digits[4:]} 0xffffffff at -12"
    return "match u32 0 0"


def _ms(value: float) -> str:
    return f"{round(value * 1000)}us"
