"""Find the quantity in which the link conditions of a run differ, so that results can be plotted against it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mplab.format.direction import WAYS
from mplab.format.link import INTERFACE_TITLES, LinkCondition

MIN_CONDITIONS = 3
"""Minimum number of link conditions of a sweep: two are a pair, which has no course."""

_TITLES: Mapping[str, tuple[str, str, float]] = {
    "rate_kbps": ("Rate of {path}", "Mbit/s", 1e-3),
    "delay_ms": ("Round trip over {path}", "ms", 1.0),
    "jitter_ms": ("Jitter of {path}", "ms", 1.0),
    "loss_percent": ("Loss on {path}", "%", 1.0),
    "reorder_percent": ("Reordering on {path}", "%", 1.0),
    "duplicate_percent": ("Duplicates on {path}", "%", 1.0),
    "queue bytes": ("Queue of {path}", "kB", 1e-3),
    "queue packets": ("Queue of {path}", "packets", 1.0),
}
"""Quantity of a direction as in records → title, unit, and factor from the record's unit to this unit."""

_CORE = "core_rtt_ms"
_Leaf: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """Link conditions that differ in one quantity of one path only.

    Attributes:
        title: the quantity with its path: ``Loss on LTE``.
        unit: unit of the quantity.
        positions: name of the link condition → its value, ascending.
    """

    title: str
    unit: str
    positions: Mapping[str, float]


def sweep_of(links: Sequence[LinkCondition]) -> Sweep | None:
    """Return the sweep that these link conditions are, or None if they are none.

    They are a sweep if there are at least `MIN_CONDITIONS`, one quantity has a different value in each of them, and all
    else is equal. The quantity is the round-trip time behind the proxy, or a quantity of one path (`_TITLES`): of one
    direction, or of both. Of both, the value is that of the direction down; the round-trip time is their sum.
    """
    if len(links) < MIN_CONDITIONS:
        return None
    described = [dict(_leaves(link.determinants())) for link in links]
    names = dict.fromkeys(name for leaves in described for name in leaves)
    varying = [name for name in names if len({leaves.get(name) for leaves in described}) > 1]
    if varying == [(_CORE,)]:
        return _ordered("Round trip behind the proxy", "ms", [link.core_rtt_ms for link in links], links)
    quantities = {(interface, " ".join(rest)) for interface, _, *rest in (n for n in varying if len(n) > 2)}
    if len(quantities) != 1 or any(len(name) <= 2 for name in varying):
        return None
    ((interface, quantity),) = quantities
    if quantity not in _TITLES or interface not in INTERFACE_TITLES:
        return None
    title, unit, factor = _TITLES[quantity]
    ways = [way for way in WAYS if any(name[1] == way for name in varying)]
    values = [_value(leaves, interface, ways, quantity) for leaves in described]
    if None in values or (quantity == "rate_kbps" and 0.0 in values):  # 0: unlimited
        return None
    return _ordered(
        title.format(path=INTERFACE_TITLES[interface]) + (f" ({ways[0]})" if len(ways) == 1 and unit != "ms" else ""),
        unit,
        [factor * value for value in values if value is not None],
        links,
    )


def _value(leaves: Mapping[_Leaf, object], interface: str, ways: Sequence[str], quantity: str) -> float | None:
    read = WAYS if quantity == "delay_ms" else ways[:1]
    found = [leaves.get((interface, way, *quantity.split(" "))) for way in read]
    numbers = [float(value) for value in found if isinstance(value, (int, float))]
    return sum(numbers) if len(numbers) == len(read) else None


def _ordered(title: str, unit: str, values: Sequence[float], links: Sequence[LinkCondition]) -> Sweep | None:
    if len(set(values)) < len(links):
        return None
    positions = {link.name: round(value, 9) for value, link in zip(values, links, strict=True)}
    return Sweep(title, unit, dict(sorted(positions.items(), key=lambda item: item[1])))


def _leaves(value: object, name: _Leaf = ()) -> Iterator[tuple[_Leaf, object]]:
    """Yield (keys, value) of everything in nested mappings; lists are one value, as text."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, (*name, str(key)))
    else:
        yield name, value if isinstance(value, (int, float, str)) else str(value)
