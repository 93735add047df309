"""Map the numbers of KeyEvent to names."""

_NAMES = {
    3: "HOME", 4: "BACK", 5: "CALL", 6: "ENDCALL", 19: "DPAD_UP", 20: "DPAD_DOWN", 21: "DPAD_LEFT", 22: "DPAD_RIGHT",
    23: "DPAD_CENTER", 24: "VOLUME_UP", 25: "VOLUME_DOWN", 26: "POWER", 27: "CAMERA", 28: "CLEAR", 55: "COMMA",
    56: "PERIOD", 61: "TAB", 62: "SPACE", 66: "ENTER", 67: "DEL", 82: "MENU", 83: "NOTIFICATION", 84: "SEARCH",
    85: "MEDIA_PLAY_PAUSE", 86: "MEDIA_STOP", 87: "MEDIA_NEXT", 88: "MEDIA_PREVIOUS", 91: "MUTE", 92: "PAGE_UP",
    93: "PAGE_DOWN", 111: "ESCAPE", 112: "FORWARD_DEL", 122: "MOVE_HOME", 123: "MOVE_END", 126: "MEDIA_PLAY",
    127: "MEDIA_PAUSE", 164: "VOLUME_MUTE", 176: "SETTINGS", 187: "APP_SWITCH", 220: "BRIGHTNESS_DOWN",
    221: "BRIGHTNESS_UP", 223: "SLEEP", 224: "WAKEUP",
}  # fmt: skip
_FIRST_DIGIT, _FIRST_LETTER = 7, 29


def key_name(word: str) -> str:
    """Return the name of a key: ``26``, ``KEYCODE_POWER`` and ``POWER`` are ``POWER``. Raises ValueError."""
    name = word.upper().removeprefix("KEYCODE_")
    if not name.isdigit() or (len(name) == 1 and int(name) not in _NAMES):
        return name
    code = int(name)
    if _FIRST_DIGIT <= code < _FIRST_DIGIT + 10:
        return str(code - _FIRST_DIGIT)
    if _FIRST_LETTER <= code < _FIRST_LETTER + 26:
        return chr(ord("A") + code - _FIRST_LETTER)
    if code not in _NAMES:
        raise ValueError(f"no key has the number {code}")
    return _NAMES[code]
