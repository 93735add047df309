"""Compose gestures from a screen's basic touches: replace texts, scroll, press keys by their codes."""

from collections.abc import Sequence

from mplab.base.hierarchy import Bounds, Node, parse_hierarchy
from mplab.device.screen.protocol import Screen

LONG_TAP_MS = 500
_KEY_CODES = {
    3: "HOME",
    4: "BACK",
    19: "DPAD_UP",
    20: "DPAD_DOWN",
    21: "DPAD_LEFT",
    22: "DPAD_RIGHT",
    23: "DPAD_CENTER",
    24: "VOLUME_UP",
    25: "VOLUME_DOWN",
    26: "POWER",
    27: "CAMERA",
    62: "SPACE",
    66: "ENTER",
    67: "DEL",
    82: "MENU",
    84: "SEARCH",
    164: "VOLUME_MUTE",
    187: "APP_SWITCH",
    223: "SLEEP",
    224: "WAKEUP",
}
"""KeyEvent's constants without ``KEYCODE_``."""
_KEY_NAMES = {
    "delete": "DEL",
    "recent": "APP_SWITCH",
    "left": "DPAD_LEFT",
    "right": "DPAD_RIGHT",
    "up": "DPAD_UP",
    "down": "DPAD_DOWN",
    "center": "DPAD_CENTER",
}
_SWIPE_MS = 250


class Hands:
    """Gestures, keys and the clipboard of one screen."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.clipboard: str | None = None
        self._touched: list[tuple[int, int]] = []

    def windows(self) -> tuple[Node, ...]:
        """Return the windows on the screen."""
        return parse_hierarchy(self.screen.current())

    def toast(self) -> str:
        """Return the toast on the screen, or ""."""
        return self.screen.toast()

    def tap(self, node: Node) -> None:
        """Tap the centre of an element."""
        self.screen.tap(*node.bounds.center)

    def long_tap(self, x: int, y: int, duration_ms: int = LONG_TAP_MS) -> None:
        """Touch a point for some time."""
        self.screen.swipe(x, y, x, y, duration_ms)

    def press_at(self, x: int, y: int, duration_ms: int) -> None:
        """Touch a point for some time: a tap or, from `LONG_TAP_MS` on, a long tap."""
        if duration_ms >= LONG_TAP_MS:
            self.long_tap(x, y, duration_ms)
        else:
            self.screen.tap(x, y)

    def clear(self, node: Node) -> None:
        """Empty a field: focus it, then press DEL for each character."""
        if "focused" not in node.flags:
            self.tap(node)
        shown = node.text if node.text != node.hint else ""
        for _ in shown:
            self.screen.key("DEL")

    def set_text(self, node: Node, text: str) -> None:
        """Replace the text of a field."""
        self.clear(node)
        self.screen.text(text)

    def clear_focused(self) -> None:
        """Empty the focused field."""
        for node in self.nodes():
            if "focused" in node.flags:
                self.clear(node)

    def nodes(self) -> list[Node]:
        """Return all elements on the screen."""
        return [node for window in self.windows() for node in window.walk()]

    def press_code(self, code: int) -> bool:
        """Press a key by its number. Return whether the key is known."""
        name = _KEY_CODES.get(code)
        if name:
            self.screen.key(name)
        return name is not None

    def press_name(self, name: str) -> bool:
        """Press a key by its name in uiautomator2. Return whether the key is known."""
        key = _KEY_NAMES.get(name.lower(), name.upper())
        known = key in _KEY_CODES.values()
        if known:
            self.screen.key(key)
        return known

    def drag(self, points: Sequence[tuple[int, int]], duration_ms: int) -> None:
        """Swipe from the first point to the last."""
        if points:
            self.screen.swipe(*points[0], *points[-1], duration_ms)

    def touch(self, action: int, x: int, y: int) -> None:
        """Handle a MotionEvent: 0 is down, 2 is move, 1 is up."""
        if action == 0:
            self._touched = []
        self._touched.append((x, y))
        if action == 1:
            if self._touched[0] == (x, y):
                self.screen.tap(x, y)
            else:
                self.drag(self._touched, _SWIPE_MS)

    def scroll(self, bounds: Bounds, *, forward: bool, vertical: bool = True) -> bool:
        """Scroll an area by four fifths of its size. Return whether the screen has changed."""
        before = self.screen.current()
        x, y = bounds.center
        if vertical:
            step = (bounds.bottom - bounds.top) * 2 // 5
            near, far = (x, y + step), (x, y - step)
        else:
            step = (bounds.right - bounds.left) * 2 // 5
            near, far = (x + step, y), (x - step, y)
        start, end = (near, far) if forward else (far, near)
        self.screen.swipe(*start, *end, _SWIPE_MS)
        return self.screen.current() != before
