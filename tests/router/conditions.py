"""Every path of every link condition, in rounds of as many as are measured at once."""

from collections.abc import Sequence
from typing import NamedTuple

from mplab.format.path import PathCondition
from mplab.lab.catalog import LINKS_DIR
from mplab.userfiles.link import list_links, load_links

LINKS = [link for file in list_links(LINKS_DIR) for link in load_links(file, LINKS_DIR)]
_BUDGET_KBPS = 75_000.0
"""Of one round: what all its probes send together leaves a busy host time."""
_ECHOES_KBPS = 25_000.0
"""What the echoes of a path without a rate count as: 2000 small packets a second each way, each kept for its delay."""


class Case(NamedTuple):
    """A path of a link condition."""

    name: str
    path: PathCondition
    changed: bool
    """A scenario begins with another one."""


def has_trace(path: PathCondition) -> bool:
    """Rates by a packet-delivery trace, which netem has not."""
    return path.up.trace is not None or path.down.trace is not None


def different_paths() -> list[Case]:
    """What a path is at the start of any condition, then what it is changed into; each once."""
    named: dict[PathCondition, Case] = {}
    for changed in (False, True):
        for link in LINKS:
            for where, path in link.conditions():
                if not has_trace(path) and (" at " in where) is changed:
                    named.setdefault(path, Case(f"{link.name}, {where}", path, changed))
    return list(named.values())


def rounds(cases: Sequence[Case], most: int) -> list[list[Case]]:
    """Cases that are measured together: at most so many, and as much as `_BUDGET_KBPS` at once, if it is not one."""
    made: list[list[Case]] = []
    for case in sorted(cases, key=lambda case: (case.changed, -_load_kbps(case.path))):
        for together in made:
            if (
                together[0].changed is case.changed
                and len(together) < most
                and sum(_load_kbps(other.path) for other in (*together, case)) <= _BUDGET_KBPS
            ):
                together.append(case)
                break
        else:
            made.append([case])
    return made


def _load_kbps(path: PathCondition) -> float:
    if path.down_kbps is None:
        return _ECHOES_KBPS if path.round_trip_loss_percent else 0.0
    return path.down_kbps + (path.up_kbps or 0.0)
