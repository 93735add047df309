"""Compose actions from a screen's basic touches and keys: replace a text, scroll, press a key by its code."""

from collections.abc import Sequence

from mplab.base.hierarchy import Bounds, UiNode
from mplab.device.screen.scripted import ScriptedScreen

LONG_TAP_MS = 500
_KEYS = {
    3: "HOME", 4: "BACK", 5: "CALL", 6: "ENDCALL", 19: "DPAD_UP", 20: "DPAD_DOWN", 21: "DPAD_LEFT", 22: "DPAD_RIGHT",
    23: "DPAD_CENTER", 24: "VOLUME_UP", 25: "VOLUME_DOWN", 26: "POWER", 27: "CAMERA", 28: "CLEAR", 55: "COMMA",
    56: "PERIOD", 61: "TAB", 62: "SPACE", 66: "ENTER", 67: "DEL", 82: "MENU", 83: "NOTIFICATION", 84: "SEARCH",
    85: "MEDIA_PLAY_PAUSE", 86: "MEDIA_STOP", 87: "MEDIA_NEXT", 88: "MEDIA_PREVIOUS", 91: "MUTE", 92: "PAGE_UP",
    93: "PAGE_DOWN", 111: "ESCAPE", 112: "FORWARD_DEL", 122: "MOVE_HOME", 123: "MOVE_END", 126: "MEDIA_PLAY",
    127: "MEDIA_PAUSE", 164: "VOLUME_MUTE", 176: "SETTINGS", 187: "APP_SWITCH", 220: "BRIGHTNESS_DOWN",
    221: "BRIGHTNESS_UP", 223: "SLEEP", 224: "WAKEUP",
}  # fmt: skip
"""Key code → name of Android's KeyEvent, without ``KEYCODE_``."""
_FIRST_DIGIT, _FIRST_LETTER = 7, 29
_KEY_ALIASES = {
    "delete": "DEL",
    "recent": "APP_SWITCH",
    "left": "DPAD_LEFT",
    "right": "DPAD_RIGHT",
    "up": "DPAD_UP",
    "down": "DPAD_DOWN",
    "center": "DPAD_CENTER",
}
"""Name of a key in uiautomator2 → its name in KeyEvent, where both differ."""
_SWIPE_MS = 250


def key_name(word: str) -> str:
    """Return the name of a key from its code or name: ``26``, ``KEYCODE_POWER`` and ``POWER`` give ``POWER``.

    Raises:
        ValueError: no key has this code.
    """
    if not word.isdigit():
        return word.upper().removeprefix("KEYCODE_")
    code = int(word)
    if _FIRST_DIGIT <= code < _FIRST_DIGIT + 10:
        return str(code - _FIRST_DIGIT)
    if _FIRST_LETTER <= code < _FIRST_LETTER + 26:
        return chr(ord("A") + code - _FIRST_LETTER)
    if code not in _KEYS:
        raise ValueError(f"no key has the number {code}")
    return _KEYS[code]


class Hands:
    """Actions of a user on one screen, composed from touches and keys; and the clipboard."""

    def __init__(self, screen: ScriptedScreen) -> None:
        self.screen = screen
        self.clipboard: str | None = None
        self._touched: list[tuple[int, int]] = []

    def windows(self) -> tuple[UiNode, ...]:
        """Return the windows that the screen shows, with their elements."""
        return self.screen.windows()

    def toast(self) -> str:
        """Return the text of the toast that the screen shows; "": no toast."""
        return self.screen.toast()

    def tap(self, node: UiNode) -> None:
        """Tap the centre of the element `node`."""
        self.screen.tap(*node.bounds.center)

    def long_tap(self, x: int, y: int, duration_ms: int = LONG_TAP_MS) -> None:
        """Touch a point for `duration_ms`, without moving."""
        self.screen.swipe(x, y, x, y, duration_ms)

    def press_at(self, x: int, y: int, duration_ms: int) -> None:
        """Touch a point for `duration_ms`. This is a long tap from `LONG_TAP_MS` on, otherwise a tap."""
        if duration_ms >= LONG_TAP_MS:
            self.long_tap(x, y, duration_ms)
        else:
            self.screen.tap(x, y)

    def clear(self, node: UiNode) -> None:
        """Remove the text of a text field: focus it, then press DEL for each character."""
        if "focused" not in node.flags:
            self.tap(node)
        shown = node.text if node.text != node.hint else ""
        for _ in shown:
            self.screen.key("DEL")

    def set_text(self, node: UiNode, text: str) -> None:
        """Replace the text of a text field."""
        self.clear(node)
        self.screen.text(text)

    def clear_focused(self) -> None:
        """Remove the text of the text field that has the focus."""
        for node in self.nodes():
            if "focused" in node.flags:
                self.clear(node)

    def nodes(self) -> list[UiNode]:
        """Return all elements on the screen."""
        return [node for window in self.windows() for node in window.walk()]

    def press_code(self, code: int) -> bool:
        """Press the key with a key code. Return whether the code is known."""
        try:
            self.screen.key(key_name(str(code)))
        except ValueError:
            return False
        return True

    def press_name(self, name: str) -> bool:
        """Press the key with a name of uiautomator2. Return whether the name is known."""
        key = _KEY_ALIASES.get(name.lower(), name.upper())
        known = key in _KEYS.values()
        if known:
            self.screen.key(key)
        return known

    def drag(self, points: Sequence[tuple[int, int]], duration_ms: int) -> None:
        """Swipe in a straight line from the first to the last of the points. Do nothing without points."""
        if points:
            self.screen.swipe(*points[0], *points[-1], duration_ms)

    def touch(self, action: int, x: int, y: int) -> None:
        """Handle a MotionEvent of one finger at a point; `action` is 0 for down, 2 for move and 1 for up."""
        if action == 0:
            self._touched = []
        self._touched.append((x, y))
        if action == 1:
            if self._touched[0] == (x, y):
                self.screen.tap(x, y)
            else:
                self.drag(self._touched, _SWIPE_MS)

    def scroll(self, bounds: Bounds, *, forward: bool, vertical: bool = True) -> bool:
        """Scroll the content of an area by four fifths of the area's size. Return whether the screen has changed."""
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
