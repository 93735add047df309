"""What automation does to a screen, above what a finger does: type over a text, scroll, press keys by their codes."""

from collections.abc import Sequence

from mplab.device.screen.protocol import Screen
from mplab.drivers.ui.hierarchy import Bounds, Node, parse_hierarchy

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
    """Works one screen."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self.clipboard: str | None = None
        self._touched: list[tuple[int, int]] = []

    def windows(self) -> tuple[Node, ...]:
        """What is shown."""
        return parse_hierarchy(self.screen.current())

    def toast(self) -> str:
        """The message that is shown for a moment; "" when there is none."""
        return self.screen.toast()

    def tap(self, node: Node) -> None:
        """Its middle."""
        self.screen.tap(*node.bounds.center)

    def long_tap(self, x: int, y: int, duration_ms: int = LONG_TAP_MS) -> None:
        """A finger that stays."""
        self.screen.swipe(x, y, x, y, duration_ms)

    def press_at(self, x: int, y: int, duration_ms: int) -> None:
        """A finger at a point, for a while: long enough, it is a long tap."""
        if duration_ms >= LONG_TAP_MS:
            self.long_tap(x, y, duration_ms)
        else:
            self.screen.tap(x, y)

    def clear(self, node: Node) -> None:
        """Empty a field: it gets the focus, and DEL as often as needed."""
        if "focused" not in node.flags:
            self.tap(node)
        shown = node.text if node.text != node.hint else ""
        for _ in shown:
            self.screen.key("DEL")

    def set_text(self, node: Node, text: str) -> None:
        """Type over what a field has."""
        self.clear(node)
        self.screen.text(text)

    def clear_focused(self) -> None:
        """Empty the field that has the focus."""
        for node in self.nodes():
            if "focused" in node.flags:
                self.clear(node)

    def nodes(self) -> list[Node]:
        """All elements that are shown."""
        return [node for window in self.windows() for node in window.walk()]

    def press_code(self, code: int) -> bool:
        """A key by its number; whether it is known."""
        name = _KEY_CODES.get(code)
        if name:
            self.screen.key(name)
        return name is not None

    def press_name(self, name: str) -> bool:
        """A key as uiautomator2 calls it; whether it is known."""
        key = _KEY_NAMES.get(name.lower(), name.upper())
        known = key in _KEY_CODES.values()
        if known:
            self.screen.key(key)
        return known

    def drag(self, points: Sequence[tuple[int, int]], duration_ms: int) -> None:
        """From the first point to the last."""
        if points:
            self.screen.swipe(*points[0], *points[-1], duration_ms)

    def touch(self, action: int, x: int, y: int) -> None:
        """MotionEvent: 0 down, 2 move, 1 up."""
        if action == 0:
            self._touched = []
        self._touched.append((x, y))
        if action == 1:
            if self._touched[0] == (x, y):
                self.screen.tap(x, y)
            else:
                self.drag(self._touched, _SWIPE_MS)

    def scroll(self, bounds: Bounds, *, forward: bool, vertical: bool = True) -> bool:
        """Move what is in an area by four fifths of it; whether something has moved."""
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
