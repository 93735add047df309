"""Answer ``input``, which touches the screen and presses keys, and ``wm``, which reports and sets the display size."""

import asyncio
import re

from mplab.device.android.android import Android, Command
from mplab.device.calls import CommandCall, CommandError
from mplab.device.screen.hands import key_name

_USAGE = "Error: Invalid arguments for command: {verb}\n"
_SOURCES = {"touchscreen", "keyboard", "mouse", "dpad", "gamepad", "touchpad", "trackball", "stylus"}
_SIZE = re.compile(r"(\d+)x(\d+)")


async def _input(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words and words[0] in _SOURCES:
        words = words[1:]
    if words[:1] == ["-d"]:
        words = words[2:]
    if not words:
        await call.err("Usage: input [<source>] [-d DISPLAY_ID] <command> [<arg>...]\n")
        return 255
    verb, *arguments = words
    try:
        await _gesture(device, verb, arguments)
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


async def _wm(device: Android, call: CommandCall) -> int:
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


COMMANDS: dict[str, Command] = {"input": _input, "wm": _wm}
