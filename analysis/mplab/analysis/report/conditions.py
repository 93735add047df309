"""Describe link conditions and transports' links in a few words, for sentences and tables."""

from collections.abc import Iterator
from typing import Literal

from mplab.analysis.text import HARD_SPACE, number
from mplab.format.direction import Direction
from mplab.format.link import INTERFACE_TITLES, LinkCondition
from mplab.format.path import OPEN, PathCondition

LONGEST_STORY = 80
"""Maximum length of the changes of a condition in a sentence, characters; longer ones are counted instead."""


def conditions(link: LinkCondition | None, way: Literal["down", "up"] = "down") -> str:
    """Return a link condition in words: ``WiFi 7.0 Mbit/s 50 ms + LTE 9.2 Mbit/s 70 ms``.

    Rates are of the direction ``way``; times are round-trip times. Loss and changes are added.
    """
    if link is None:
        return "unknown links"
    paths = " + ".join(f"{INTERFACE_TITLES[name]} {_path(path, way)}" for name, path in link.paths().items())
    extra = f", {link.core_rtt_ms:g}{HARD_SPACE}ms from proxy to server" if link.core_rtt_ms else ""
    story = link.story
    if len(story) > LONGEST_STORY:
        story = f"{len(link.changes)} changes of the links"
    return paths + extra + (f" ({story})" if story else "")


def _path(path: PathCondition, way: Literal["down", "up"]) -> str:
    return "as it is" if path == OPEN else " ".join(_parts(path, path.way(way)))


def _parts(path: PathCondition, direction: Direction) -> Iterator[str]:
    if direction.trace is not None:
        yield f"rates of {direction.trace.name}"
    elif direction.rate_kbps is None:
        yield "unlimited"
    elif direction.rate_kbps < 1000:
        yield f"{number(direction.rate_kbps)}{HARD_SPACE}kbit/s"
    else:
        yield f"{direction.rate_kbps / 1000:.1f}{HARD_SPACE}Mbit/s"
    if path.rtt_ms:
        yield f"{path.rtt_ms:g}{HARD_SPACE}ms"
    if direction.loss_percent:
        yield f"{direction.loss_percent:.3g}{HARD_SPACE}% loss"
