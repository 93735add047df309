"""Define the surroundings of an app: the device, and the data that the app has stored."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mplab.device.screen.layout import Item
from mplab.device.screen.work import Work


@dataclass(frozen=True)
class Surroundings:
    """Services of the device for apps.

    Attributes:
        start: starts a program in the device's network.
        folder: function from a folder of the device to its folder on the host, or None.
        clock: monotonic clock, s.
        variables: name of a script's variable → value that replaces its initial one.
        proxy: returns the HTTP proxy in Android's settings, ``HOST:PORT``; "": none.
    """

    start: Callable[[tuple[str, ...]], Work]
    folder: Callable[[str], Path | None]
    clock: Callable[[], float]
    variables: Mapping[str, str] = field(default_factory=dict)
    proxy: Callable[[], str] = str


@dataclass
class Stored:
    """Data of an app that survives its end, until the app is cleared.

    Attributes:
        starts: number of starts of the app.
        dialogs: names of the dialogs that were shown and may appear only once.
        variables: kept variables, name → value.
        lists: kept lists, name → entries.
    """

    starts: int = 0
    dialogs: set[str] = field(default_factory=set)
    variables: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[Item]] = field(default_factory=dict)
