"""Define the ``Screen`` protocol: apps that can be seen and touched; and agents: programs of UI test frameworks.

The device calls it from its event loop, one call at a time: every method must return at once. A process that takes time
on a real phone (an app that starts, a page that loads) is a state of the screen that a later `current` shows.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class DeviceFacts:
    """Facts about a device."""

    product: str = "mplab"
    sdk: int = 34
    width: int = 1080
    height: int = 2340
    density: int = 440
    """Density, dots per inch."""
    model: str = "Emulated"
    manufacturer: str = "mplab"
    release: str = "14"


@dataclass(frozen=True)
class InstalledPackage:
    """An app on the phone.

    Attributes:
        name: ``com.dropbox.android``.
        version: ``versionName``, for users.
        version_code: ``versionCode``, which grows with every release.
        activity: activity that its icon starts, like ``.MainActivity``; "": it has no icon.
        system: part of the system image: it cannot be uninstalled, only disabled.
    """

    name: str
    version: str = "1.0"
    version_code: int = 1
    activity: str = ".MainActivity"
    system: bool = False


class Screen(Protocol):
    """The screen of one device, and the apps on it."""

    def current(self) -> str:
        """Return the hierarchy in the format of ``uiautomator dump`` (XML, ``<hierarchy rotation="0">``)."""

    def focus(self) -> tuple[str, str]:
        """Return package and activity in front, like ``("com.android.launcher3", ".Launcher")``."""

    def toast(self) -> str:
        """Return the toast on the screen, or ""."""

    def tap(self, x: int, y: int) -> None:
        """Tap a point, in pixels of the device."""

    def swipe(self, x1: int, y1: int, x2: int, y2: int, duration_ms: int) -> None:
        """Swipe from one point to another, in pixels of the device."""

    def text(self, text: str) -> None:
        """Type into the focused field."""

    def key(self, name: str) -> None:
        """Press a key by its name without ``KEYCODE_``: ``HOME``, ``BACK``, ``ENTER``, ``WAKEUP``."""

    def start(self, package: str, activity: str) -> None:
        """Bring an app to the front; with `activity` "", the activity that its icon starts.

        Raises:
            KeyError: there is no such package or activity.
        """

    def stop(self, package: str) -> None:
        """Stop an app; do nothing if it does not run."""

    def clear(self, package: str) -> None:
        """Stop an app and remove its data: its next start is like its first."""

    def installed(self) -> Sequence[InstalledPackage]:
        """Return the apps that this screen can show: they are installed in addition to those of the phone file."""

    def use_proxy(self, address: str) -> None:
        """Set the HTTP proxy of Android's settings, ``HOST:PORT``, for apps that use it; "": none."""

    def reboot(self) -> None:
        """Stop all apps, and show the home screen."""


@dataclass(frozen=True)
class AgentContext:
    """The context of a started agent.

    Attributes:
        arguments: words after its name on the command line, or ``-e KEY VALUE`` of ``am instrument``.
        listen: makes a listening socket inside the device, like ``listen("tcp:9008")``; raises OSError.
        print: writes to its standard output.
    """

    arguments: Sequence[str]
    listen: Callable[[str], socket.socket]
    print: Callable[[str], Awaitable[None]]


AgentMain = Callable[[AgentContext], Awaitable[int]]
"""Function that runs in the device's event loop and returns an exit code. Its cancellation is a kill of its process."""

Agents = Mapping[str, AgentMain]
"""Agents by main class (``com.wetest.uia2.Main``) or instrumentation (``io.appium.uiautomator2.server.test/…``)."""
