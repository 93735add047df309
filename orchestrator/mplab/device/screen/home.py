"""A screen without apps: the home screen, and a blank page for every package that is started."""

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
    """Stands in where no scripted apps are given: packages start and stop, and show their name."""

    def __init__(self, width: int = 1080, height: int = 2340) -> None:
        self._width, self._height = width, height
        self._stack: list[tuple[str, str]] = []
        self._typed = ""

    def current(self) -> str:
        """The hierarchy as ``uiautomator dump`` writes it."""
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
        """Package and activity in front."""
        return self._stack[-1] if self._stack else (LAUNCHER, _LAUNCHER_ACTIVITY)

    def toast(self) -> str:
        """No app that would show one."""
        return ""

    def use_proxy(self, address: str) -> None:
        """No app that would."""

    def tap(self, x: int, y: int) -> None:
        """Nothing to be touched."""

    def swipe(self, x1: int, y1: int, x2: int, y2: int, duration_ms: int) -> None:
        """Nothing that scrolls."""

    def text(self, text: str) -> None:
        """Show what is typed."""
        self._typed += text

    def key(self, name: str) -> None:
        """HOME and BACK leave the app."""
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
        """End it."""
        self._stack = [entry for entry in self._stack if entry[0] != package]

    def clear(self, package: str) -> None:
        """End it; it has stored nothing."""
        self.stop(package)

    def installed(self) -> Sequence[InstalledPackage]:
        """No apps of its own."""
        return ()

    def reboot(self) -> None:
        """Back to the home screen."""
        self._stack.clear()
        self._typed = ""
