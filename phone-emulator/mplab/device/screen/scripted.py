"""Show the home screen and scripted apps, and apply touches and keys to them.

Every method returns at once, because the device calls it from its event loop. If something takes time on a real phone
(the start of an app, the load of a page), the method starts it, and later calls of `ScriptedScreen.current` show it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mplab.base.hierarchy import Bounds, UiNode, write_hierarchy
from mplab.device.screen.protocol import InstalledPackage
from mplab.device.screen.running import RunningApp
from mplab.device.screen.script import VIEW, AppScript
from mplab.device.screen.surroundings import Stored, Surroundings, Work

LAUNCHER = "com.android.launcher3"
LAUNCHER_ACTIVITY = ".Launcher"
STATUS_BAR, NAVIGATION_BAR = 72, 126
"""Heights of the status bar at the top and of the navigation bar at the bottom of the screen, pixels."""
_ICON = 240
_LONG_MS = 500


class ScriptedScreen:
    """The screen of a phone: a home screen with an icon for each app, and the scripted apps.

    Args:
        scripts: the scripted apps.
        width: width of the screen, pixels.
        height: height of the screen, pixels.
        enter: function that returns the words that must precede a command line to run it in the device's network.
        environment: environment variables of the apps' programs, in addition to those of this process.
        folder: function that returns the host's path of a folder on the device; None: apps cannot access it.
        variables: name of an app's variable → value that replaces its initial one.
        clock: monotonic clock, s.
    """

    def __init__(
        self,
        scripts: Sequence[AppScript],
        *,
        width: int = 1080,
        height: int = 2340,
        enter: Callable[[], Sequence[str]] = tuple,
        environment: Mapping[str, str] | None = None,
        folder: Callable[[str], Path | None] = lambda _name: None,
        variables: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.width, self.height = width, height
        self._scripts = {script.package: script for script in scripts}
        self._around = Surroundings(
            start=lambda argv: Work([*enter(), *argv], environment),
            folder=folder,
            clock=clock,
            variables=variables or {},
            proxy=lambda: self._proxy,
        )
        self._proxy = ""
        self._stored: dict[str, Stored] = {}
        self._running: dict[str, RunningApp] = {}
        self._front: list[str] = []
        """Package names of the visible apps in stacking order; the last one is in front."""

    def use_proxy(self, address: str) -> None:
        """Set the HTTP proxy ``HOST:PORT`` of the programs that apps start from now on; "": no proxy."""
        self._proxy = address

    def current(self) -> str:
        """Return the element tree of the screen, in the XML format of ``uiautomator dump``."""
        return write_hierarchy(self.windows())

    def windows(self) -> tuple[UiNode, ...]:
        """Return the window on the screen with its element tree."""
        app = self._app()
        screen = Bounds(0, 0, self.width, self.height)
        inner = Bounds(0, STATUS_BAR, self.width, self.height - NAVIGATION_BAR)
        children = app.draw(inner) if app else self._icons()
        package = app.package if app else LAUNCHER
        content = UiNode("android.widget.FrameLayout", package, "android:id/content", bounds=inner, children=children)
        return (UiNode("android.widget.FrameLayout", package, bounds=screen, children=(content,)),)

    def focus(self) -> tuple[str, str]:
        """Return package name and activity of the app in front."""
        app = self._app()
        return (app.package, app.activity) if app else (LAUNCHER, LAUNCHER_ACTIVITY)

    def toast(self) -> str:
        """Return the text of the toast that the screen shows; "": no toast."""
        app = self._app()
        return app.toast if app else ""

    def tap(self, x: int, y: int) -> None:
        """Tap a point of the screen."""
        self._touch(x, y, long=False)

    def swipe(self, x1: int, y1: int, x2: int, y2: int, duration_ms: int) -> None:
        """Swipe from (x1, y1) to (x2, y2). If both are equal, it is a tap or a long tap, as with ``input swipe``."""
        if (x1, y1) == (x2, y2):
            self._touch(x1, y1, long=duration_ms >= _LONG_MS)
            return
        app = self._app()
        if app:
            self.windows()
            app.swipe(x1, y1, y1 - y2)

    def text(self, text: str) -> None:
        """Type a text into the text field that has the focus, if there is one."""
        app = self._app()
        if app:
            app.type(text)

    def key(self, name: str) -> None:
        """Press the key HOME, BACK, ENTER or DEL. Other keys do nothing."""
        app = self._app()
        if app is None:
            return
        if name == "HOME":
            app.in_front = False
            self._front.clear()
        else:
            app.key(name)
            self._tidy()

    def start(self, package: str, activity: str) -> None:
        """Start an app or bring it to the front, with an activity; "": the activity that its icon starts.

        An installed app without a script shows an empty page.

        Raises:
            KeyError: the scripted app has no such activity.
        """
        script = self._scripts.get(package)
        if script is None:
            self.stop(package)
            script = _empty(package, activity)
        name = _activity(script, activity or script.launcher or VIEW)
        app = self._running.get(package)
        if app is None:
            app = self._running[package] = RunningApp(script, self._stored.setdefault(package, Stored()), self._around)
            app.open(name)
        elif name == script.launcher and not app.left:
            app.resume()
        else:
            app.open(name)
        self._front = [*(name for name in self._front if name != package), package]

    def open(self, package: str, link: str) -> None:
        """Open a link in a running app, unless it opens no links. Raises KeyError if the app does not run."""
        app = self._running[package]
        if VIEW in app.script.activities:
            app.open(VIEW, link)

    def stop(self, package: str) -> None:
        """Stop an app; do nothing if it does not run."""
        app = self._running.pop(package, None)
        if app is not None:
            app.stop()
        self._front = [name for name in self._front if name != package]

    def clear(self, package: str) -> None:
        """Stop an app, and remove the data that it has stored."""
        self.stop(package)
        self._stored.pop(package, None)

    def installed(self) -> Sequence[InstalledPackage]:
        """Return the scripted apps as installed apps."""
        return tuple(
            InstalledPackage(script.package, script.version, script.version_code, script.launcher, script.system)
            for script in self._scripts.values()
        )

    def reboot(self) -> None:
        """Stop all apps, and show the home screen."""
        for package in list(self._running):
            self.stop(package)

    def pop_up(self, package: str, dialog: str) -> None:
        """Show a dialog of an app now, regardless of its schedule. Start the app if it is not in front.

        Raises:
            KeyError: there is no such scripted app, or it has no such dialog.
        """
        script = self._scripts[package]
        if dialog not in script.dialogs:
            raise KeyError(f"{package}: no dialog {dialog}; there is: {', '.join(script.dialogs) or 'none'}")
        app = self._app()
        if app is None or app.script is not script:
            self.start(package, next(iter(script.activities)))
        self._running[package].show_dialog(dialog)

    def _app(self) -> RunningApp | None:
        """Let all apps handle everything that is due. Return the app in front; None: the home screen is shown."""
        for app in self._running.values():
            app.tick()
        self._tidy()
        return self._running[self._front[-1]] if self._front else None

    def _tidy(self) -> None:
        self._front = [package for package in self._front if self._running[package].in_front]

    def _touch(self, x: int, y: int, *, long: bool) -> None:
        app = self._app()
        if app:
            self.windows()  # touches refer to the current positions
            app.tap(x, y, long=long)
            self._tidy()
            return
        for icon, script in zip(self._icons(), self._launchable(), strict=True):
            if icon.bounds.holds(x, y):
                self.start(script.package, "")

    def _launchable(self) -> list[AppScript]:
        return [script for script in self._scripts.values() if script.launcher]

    def _icons(self) -> tuple[UiNode, ...]:
        columns = max(1, self.width // _ICON)
        nodes = []
        for number, script in enumerate(self._launchable()):
            left, top = number % columns * _ICON, STATUS_BAR + number // columns * _ICON
            bounds = Bounds(left, top, left + _ICON, top + _ICON)
            flags = frozenset({"enabled", "clickable", "focusable", "long-clickable"})
            nodes.append(
                UiNode("android.widget.TextView", LAUNCHER, "", script.title, script.title, bounds=bounds, flags=flags)
            )
        return tuple(nodes)


def _empty(package: str, activity: str) -> AppScript:
    return AppScript.model_validate(
        {
            "package": package,
            "title": package,
            "activities": {activity or ".MainActivity": "page"},
            "screens": {"page": {"widgets": ({"class": "FrameLayout", "id": "content"},)}},
        }
    )


def _activity(script: AppScript, name: str) -> str:
    """Return the name by which a script defines an activity; ``.Main`` and ``com.example.Main`` are equal.

    Raises:
        KeyError: the script has no such activity.
    """
    for known in script.activities:
        if _full(known, script.package) == _full(name, script.package):
            return known
    raise KeyError(f"{script.package}: no activity {name}; there is: {', '.join(script.activities)}")


def _full(activity: str, package: str) -> str:
    return f"{package}{activity}" if activity.startswith(".") else activity
