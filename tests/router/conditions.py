"""Every path of every link condition, grouped into rounds of paths that are measured at once."""

from collections.abc import Sequence
from typing import NamedTuple

from mplab.format.path import PathCondition
from mplab.lab.catalog import LINKS_DIR
from mplab.userfiles.links.link import list_links, load_links

LINKS = [link for file in list_links(LINKS_DIR) for link in load_links(file, LINKS_DIR)]
_BUDGET_KBPS = 75_000.0
"""Maximum load of one round, kbit/s: the sum of its probes, at which a busy host still keeps up."""
_ECHOES_KBPS = 25_000.0
"""Load of the echoes on a path without a rate, kbit/s: each way 2000 small, delayed packets per second."""


class Case(NamedTuple):
    """A path of a link condition."""

    name: str
    path: PathCondition
    changed: bool
    """Whether a change during the scenario leads to this path."""


def needs_emulator(path: PathCondition) -> bool:
    """Return whether a packet-delivery trace gives the rates, or a middlebox is on the path: `tc` has neither."""
    return any(way.trace is not None or way.middlebox != "none" for way in (path.up, path.down))


def different_paths() -> list[Case]:
    """Return the different paths at the start of conditions, then those after changes; each path once."""
    named: dict[PathCondition, Case] = {}
    for changed in (False, True):
        for link in LINKS:
            for where, path in link.conditions():
                if not needs_emulator(path) and (" at " in where) is changed:
                    named.setdefault(path, Case(f"{link.name}, {where}", path, changed))
    return list(named.values())


def rounds(cases: Sequence[Case], most: int) -> list[list[Case]]:
    """Group cases into rounds of at most `most` cases and `_BUDGET_KBPS`; one larger case is a round by itself."""
    grouped: list[list[Case]] = []
    for case in sorted(cases, key=lambda case: (case.changed, -_load_kbps(case.path))):
        for together in grouped:
            if (
                together[0].changed is case.changed
                and len(together) < most
                and sum(_load_kbps(other.path) for other in (*together, case)) <= _BUDGET_KBPS
            ):
                together.append(case)
                break
        else:
            grouped.append([case])
    return grouped


def _load_kbps(path: PathCondition) -> float:
    if path.down_kbps is None:
        return _ECHOES_KBPS if path.round_trip_loss_percent else 0.0
    return path.down_kbps + (path.up_kbps or 0.0)
