"""Answer ``getprop`` and ``setprop``."""

from mplab.device.android.android import Android, Command
from mplab.device.calls import Call, CommandError

_LONGEST_VALUE = 91


async def _getprop(device: Android, call: Call) -> int:
    values = device.state.properties
    words = [word for word in call.argv[1:] if word != "-T"]
    if not words:
        await call.out("".join(f"[{name}]: [{value}]\n" for name, value in sorted(values.items())))
    else:
        default = words[1] if len(words) > 1 else ""
        await call.out(f"{values.get(words[0], default)}\n")
    return 0


async def _setprop(device: Android, call: Call) -> int:
    if len(call.argv) != 3:
        raise CommandError('setprop: Need 2 arguments (see "setprop --help")')
    name, value = call.argv[1:]
    if name.startswith("ro.") and name in device.state.properties:
        raise CommandError(f"Failed to set property '{name}' to '{value}'.\nSee dmesg for error reason.")
    if not call.root and not name.startswith(("debug.", "log.", "persist.log.", "sys.powerctl", "svc.")):
        raise CommandError(f"Failed to set property '{name}' to '{value}'.\nSee dmesg for error reason.")
    if len(value) > _LONGEST_VALUE and not name.startswith("ro."):
        raise CommandError(f"setprop: value '{value}' too long")
    device.state.properties[name] = value
    if name == "sys.powerctl":
        device.reboot(value.partition(",")[2])
    return 0


COMMANDS: dict[str, Command] = {"getprop": _getprop, "setprop": _setprop}
