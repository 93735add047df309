"""Answer ``input`` and ``wm``: touches, keys, the size of the display."""

import asyncio
import re

from mplab.device.android.android import Android, Command
from mplab.device.calls import Call, CommandError

_USAGE = "Error: Invalid arguments for command: {verb}\n"
_SOURCES = {"touchscreen", "keyboard", "mouse", "dpad", "gamepad", "touchpad", "trackball", "stylus"}
_SIZE = re.compile(r"(\d+)x(\d+)")


async def _input(device: Android, call: Call) -> int:
    words = call.argv[1:]
    if words and words[0] in _SOURCES:
        words = words[1:]
    if words[:1] == ["-d"]:
        words = words[2:]
    if not words:
        await call.err("Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n")
        return 255
    verb, *rest = words
    try:
        await _gesture(device, verb, rest)
    except (ValueError, IndexError):
        await call.err(_USAGE.format(verb=verb))
        return 255
    await device.follow_screen()
    return 0


async def _gesture(device: Android, verb: str, rest: list[str]) -> None:
    state, screen = device.state, device.state.screen
    if verb == "keyevent":
        for word in rest:
            if not word.startswith("--"):
                _press(device, key_name(word))
    elif not state.awake:
        return  # a display that is off ignores touches
    elif verb == "tap":
        screen.tap(int(float(rest[0])), int(float(rest[1])))
    elif verb in {"swipe", "draganddrop"}:
        x1, y1, x2, y2 = (int(float(word)) for word in rest[:4])
        duration = int(rest[4]) if len(rest) > 4 else 300
        screen.swipe(x1, y1, x2, y2, duration)
        await asyncio.sleep(duration / 1000)
    elif verb == "text":
        screen.text(rest[0].replace("%s", " "))
    elif verb in {"roll", "press", "motionevent"}:
        return
    else:
        raise ValueError(verb)


def _press(device: Android, name: str) -> None:
    state = device.state
    if name == "POWER":
        state.awake = not state.awake
    elif name == "SLEEP":
        state.awake = False
    elif name in {"WAKEUP", "HOME", "MENU"} and not state.awake:
        state.awake = name != "MENU"
    elif state.awake:
        state.screen.key(name)


async def _wm(device: Android, call: Call) -> int:
    state, words = device.state, call.argv[1:]
    screen = state.model.screen
    if words[:1] == ["size"]:
        if len(words) > 1:
            state.size_override = _size_of(words[1])
        text = f"Physical size: {screen.width}x{screen.height}\n"
        if state.size_override:
            text += "Override size: {}x{}\n".format(*state.size_override)
    elif words[:1] == ["density"]:
        if len(words) > 1:
            state.density_override = None if words[1] == "reset" else int(words[1])
        text = f"Physical density: {screen.density}\n"
        if state.density_override:
            text += f"Override density: {state.density_override}\n"
    elif words[:1] == ["dismiss-keyguard"]:
        state.locked = False
        return 0
    elif words[:1] == ["user-rotation"]:
        text = "free\n" if state.settings["system"].get("accelerometer_rotation") == "1" else "lock 0\n"
    else:
        raise CommandError(f"Unknown command: {' '.join(words)}", 255)
    await call.out(text if len(words) == 1 else "")
    return 0


def _size_of(word: str) -> tuple[int, int] | None:
    if word == "reset":
        return None
    if not (match := _SIZE.fullmatch(word)):
        raise CommandError(f"Error: expected number of pixels, found {word!r}", 255)
    return int(match.group(1)), int(match.group(2))


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


COMMANDS: dict[str, Command] = {"input": _input, "wm": _wm}
