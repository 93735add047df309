"""Answer ``getprop``, ``setprop`` and ``settings``: read and change the phone's properties and settings."""

from mplab.device.android.android import Android, Command
from mplab.device.calls import CommandCall, CommandError

_LONGEST_VALUE = 91


async def _getprop(device: Android, call: CommandCall) -> int:
    values = device.state.properties
    words = [word for word in call.argv[1:] if word != "-T"]
    if not words:
        await call.out("".join(f"[{name}]: [{value}]\n" for name, value in sorted(values.items())))
    else:
        default = words[1] if len(words) > 1 else ""
        await call.out(f"{values.get(words[0], default)}\n")
    return 0


async def _setprop(device: Android, call: CommandCall) -> int:
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


_NAMESPACES = ("system", "secure", "global")
_HELP = """Settings provider (settings) commands:
  help
      Print this help text.
  get [--user <USER_ID> | current] NAMESPACE KEY
      Retrieve the current value of KEY.
  put [--user <USER_ID> | current] NAMESPACE KEY VALUE [TAG] [default]
      Change the contents of KEY to VALUE.
  delete [--user <USER_ID> | current] NAMESPACE KEY
      Delete the entry for KEY.
  list [--user <USER_ID> | current] NAMESPACE
      Print all defined keys.
      NAMESPACE is one of {system, secure, global}, case-insensitive
"""
_ARGUMENTS = {"get": 2, "put": 3, "delete": 2, "list": 1}
_PROXY = "http_proxy"
_RADIO_SETTINGS = ("mobile_data_always_on", "airplane_mode_on", "mobile_data", "wifi_on")


async def settings(device: Android, call: CommandCall) -> int:
    """Answer ``settings VERB [--user N] NAMESPACE [KEY [VALUE]]``. Raises CommandError for wrong arguments."""
    words = _without_user(call.argv[1:])
    if not words or words[0] in {"help", "-h"}:
        await call.out(_HELP)
        return 0
    verb, *arguments = words
    if verb not in _ARGUMENTS:
        raise CommandError(f"Invalid command: {verb}", 255)
    if len(arguments) < _ARGUMENTS[verb]:
        raise CommandError("Bad arguments", 255)
    namespace = arguments[0].lower()
    if namespace not in _NAMESPACES:
        raise CommandError(f"Invalid namespace '{arguments[0]}'", 255)
    values = device.state.settings[namespace]
    if verb == "get":
        await call.out(f"{values.get(arguments[1], 'null')}\n")
    elif verb == "list":
        await call.out("".join(f"{key}={value}\n" for key, value in sorted(values.items())))
    elif verb == "put":
        values[arguments[1]] = arguments[2]
        if arguments[1] in _RADIO_SETTINGS:
            device.radios.update()
        if (namespace, arguments[1]) == ("global", _PROXY):
            _take_proxy(device, arguments[2])
    else:
        await call.out(f"Deleted {int(values.pop(arguments[1], None) is not None)} rows\n")
    return 0


def _take_proxy(device: Android, value: str) -> None:
    """Apply a new value of the setting ``http_proxy``, as ConnectivityService does (ProxyTracker, Android 10 to 16).

    ``HOST:PORT`` becomes the proxy of every app that uses the system's proxy. A value without host or port removes the
    proxy.
    """
    host, _, port = value.partition(":")
    valid = bool(host) and port.isdigit() and int(port) > 0
    device.state.settings["global"] |= {
        "global_http_proxy_host": host if valid else "",
        "global_http_proxy_port": port if valid else "0",
        "global_http_proxy_exclusion_list": "",
    }
    device.state.screen.use_proxy(f"{host}:{port}" if valid else "")


def _without_user(words: list[str]) -> list[str]:
    if "--user" in words:
        at = words.index("--user")
        return words[:at] + words[at + 2 :]
    return words


COMMANDS: dict[str, Command] = {"getprop": _getprop, "setprop": _setprop, "settings": settings}
