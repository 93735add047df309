"""The ``Screen`` protocol: apps as seen and touched.

The device calls it from its event loop, one call at a time: every method answers at once. What takes time on a real
phone (an app that starts, a page that loads) is a state of the screen that a later `current` shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class InstalledPackage:
    """An app on the phone.

    Attributes:
        name: ``com.dropbox.android``.
        version: ``versionName``, as a user reads it.
        version_code: ``versionCode``, which grows with every release.
        activity: what its icon starts, e.g. ``.MainActivity``; "" when it has no icon.
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
        """The hierarchy as ``uiautomator dump`` writes it (XML, ``<hierarchy rotation="0">``)."""

    def focus(self) -> tuple[str, str]:
        """Package and activity in front, e.g. ``("com.android.launcher3", ".Launcher")``."""

    def toast(self) -> str:
        """The message that is shown for a moment; "" when there is none."""

    def tap(self, x: int, y: int) -> None:
        """A finger at a point, in pixels of the device."""

    def swipe(self, x1: int, y1: int, x2: int, y2: int, duration_ms: int) -> None:
        """A finger that moves."""

    def text(self, text: str) -> None:
        """Type into what has the focus."""

    def key(self, name: str) -> None:
        """A key by its name without ``KEYCODE_``: ``HOME``, ``BACK``, ``ENTER``, ``WAKEUP``."""

    def start(self, package: str, activity: str) -> None:
        """Bring an app to the front; `activity` "" is what its icon starts.

        Raises:
            KeyError: no such package or activity.
        """

    def stop(self, package: str) -> None:
        """End an app; nothing when it does not run."""

    def clear(self, package: str) -> None:
        """Forget what an app has stored: it ends, and its next start is its first."""

    def installed(self) -> Sequence[InstalledPackage]:
        """Apps that this screen can show: they are on the device beside those of its phone file."""

    def use_proxy(self, address: str) -> None:
        """Have apps that take the HTTP proxy of Android's settings use this one, ``HOST:PORT``; "": none."""

    def reboot(self) -> None:
        """Everything ends; the home screen is shown."""
