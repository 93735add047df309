"""What an app has around it: the device, and what it has stored there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mplab.device.screen.layout import Item
from mplab.device.screen.work import Work


@dataclass(frozen=True)
class Surroundings:
    """What apps are given by the device.

    Attributes:
        start: starts a program in the device's network.
        folder: a folder of the device → where its files are on the host; None when there is none.
        clock: seconds, ascending.
        variables: instead of the first values of a script's.
        proxy: the HTTP proxy in Android's settings, ``HOST:PORT``; "": none.
    """

    start: Callable[[tuple[str, ...]], Work]
    folder: Callable[[str], Path | None]
    clock: Callable[[], float]
    variables: Mapping[str, str] = field(default_factory=dict)
    proxy: Callable[[], str] = str


@dataclass
class Stored:
    """What an app keeps when it ends, until it is cleared."""

    starts: int = 0
    dialogs: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[Item]] = field(default_factory=dict)
