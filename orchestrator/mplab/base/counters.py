"""Network counters of the kernel: ``/proc/net/netstat``, ``/proc/net/snmp`` and ``/proc/net/dev``."""

from collections.abc import Mapping


def parse_netstat(text: str) -> dict[str, int]:
    """Parse pairs of lines ``Name: key key…`` / ``Name: value value…`` into ``{"Name.key": value}``."""
    counters: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines() if ":" in line]
    for header, values in zip(lines[::2], lines[1::2], strict=False):
        if header[0] != values[0]:
            continue
        group = header[0].rstrip(":")
        for key, value in zip(header[1:], values[1:], strict=False):
            counters[f"{group}.{key}"] = int(value)
    return counters


_RX, _TX = 0, 8
"""First columns of the receive and the transmit counters in ``/proc/net/dev``, counted from 0."""


def parse_interfaces(text: str) -> dict[str, int]:
    """Parse ``/proc/net/dev`` into ``{"wlan0.rx_bytes": …, "wlan0.rx_packets": …, "wlan0.tx_bytes": …, …}``.

    Bytes count whole frames, Ethernet headers included.
    """
    counters: dict[str, int] = {}
    for line in text.splitlines():
        name, colon, numbers = line.partition(":")
        if not colon:
            continue
        values = [int(value) for value in numbers.split()]
        for direction, first in (("rx", _RX), ("tx", _TX)):
            counters[f"{name.strip()}.{direction}_bytes"] = values[first]
            counters[f"{name.strip()}.{direction}_packets"] = values[first + 1]
    return counters


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Return counter → ``after - before`` for each counter that changed. A counter that `before` lacks starts at 0."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
