"""Emulate a screen without scripted apps: the home screen, and a blank page for every started package."""

from collections.abc import Sequence
from xml.sax.saxutils import quoteattr

from mplab.device.screen.protocol import InstalledPackage

LAUNCHER = "com.android.launcher3"
_LAUNCHER_ACTIVITY = ".Launcher"
_DECLARATION = "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
_FLAGS = {
    "checkable": "false",
    "checked": "false",
    "clickable": "false",
    "enabled": "true",
    "focusable": "false",
    "focused": "false",
    "scrollable": "false",
    "long-clickable": "false",
    "password": "false",
    "selected": "false",
}


class HomeScreen:
    """A screen without scripted apps: packages start and stop, and show a blank page."""

    def __init__(self, width: int = 1080, height: int = 2340) -> None:
        self._width, self._height = width, height
        self._stack: list[tuple[str, str]] = []
        self._typed = ""

    def current(self) -> str:
        """Return the hierarchy in the format of ``uiautomator dump``."""
        package, _activity = self.focus()
        attributes = {
            "index": "0",
            "text": self._typed or ("" if self._stack else "Home"),
            "resource-id": f"{package}:id/content",
            "class": "android.widget.FrameLayout",
            "package": package,
            "content-desc": "",
            **_FLAGS,
            "bounds": f"[0,0][{self._width},{self._height}]",
        }
        node = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
        return f'{_DECLARATION}<hierarchy rotation="0"><node {node} /></hierarchy>'

    def focus(self) -> tuple[str, str]:
        """Return package and activity in front."""
        return self._stack[-1] if self._stack else (LAUNCHER, _LAUNCHER_ACTIVITY)

    def toast(self) -> str:
        """Return "": there are no toasts."""
        return ""

    def use_proxy(self, address: str) -> None:
        """Do nothing: no app uses a proxy."""

    def tap(self, x: int, y: int) -> None:
        """Do nothing: no element reacts to touches."""

    def swipe(self, x1: int, y1: int, x2: int, y2: int, duration_ms: int) -> None:
        """Do nothing: no element scrolls."""

    def text(self, text: str) -> None:
        """Append to the text on the screen."""
        self._typed += text

    def key(self, name: str) -> None:
        """Press a key: HOME and BACK leave the app, others do nothing."""
        if name == "HOME":
            self._stack.clear()
        elif name == "BACK" and self._stack:
            self._stack.pop()
        if name in {"HOME", "BACK"}:
            self._typed = ""

    def start(self, package: str, activity: str) -> None:
        """Bring a package to the front."""
        self.stop(package)
        self._stack.append((package, activity or ".MainActivity"))
        self._typed = ""

    def stop(self, package: str) -> None:
        """Stop a package."""
        self._stack = [entry for entry in self._stack if entry[0] != package]

    def clear(self, package: str) -> None:
        """Stop a package. There is no data to remove."""
        self.stop(package)

    def installed(self) -> Sequence[InstalledPackage]:
        """Return no apps."""
        return ()

    def reboot(self) -> None:
        """Stop all packages, and show the home screen."""
        self._stack.clear()
        self._typed = ""
