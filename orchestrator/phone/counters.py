"""The kernel's network counters, as ``/proc/net/netstat`` and ``/proc/net/snmp`` print them."""

from collections.abc import Mapping


def parse_netstat(text: str) -> dict[str, int]:
    """Pairs of lines ``Name: key key…`` / ``Name: value value…`` → ``{"Name.key": value}``."""
    counters: dict[str, int] = {}
    lines = [line.split() for line in text.splitlines() if ":" in line]
    for header, values in zip(lines[::2], lines[1::2], strict=False):
        if header[0] != values[0]:
            continue
        group = header[0].rstrip(":")
        for key, value in zip(header[1:], values[1:], strict=False):
            counters[f"{group}.{key}"] = int(value)
    return counters


def difference(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """Counters that changed, by how much."""
    return {key: value - before.get(key, 0) for key, value in after.items() if value != before.get(key, 0)}
