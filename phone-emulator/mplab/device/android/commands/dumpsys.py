"""Answer ``dumpsys``, which prints the state of Android's services."""

from collections.abc import Callable, Mapping

from mplab.device.android.android import Android, Command
from mplab.device.android.commands.cmd import SERVICES
from mplab.device.android.commands.pm import dump_package
from mplab.device.android.dumps import power, radio, window
from mplab.device.calls import CommandCall


def _surface(device: Android, words: list[str]) -> str:
    if "--latency" in words:
        return window.surface_latency(device.state)
    if "--latency-clear" in words:
        return ""
    if "--list" in words:
        package, activity = device.state.screen.focus()
        return f"SurfaceView - {package}/{activity}#0\n{package}/{package}{activity}#0\nStatusBar#0\nNavigationBar0#0\n"
    if "--display-id" in words:
        return 'Display 4619827259835644672 (HWC display 0): port=0 pnpId=GGL displayName="EMU"\n'
    return "Build configuration: [sf]\n"


def _activity(device: Android, words: list[str]) -> str:
    if words[:1] == ["top"]:
        return window.activity_top(device.state)
    if words[:1] == ["services"]:
        return "ACTIVITY MANAGER SERVICES (dumpsys activity services)\n  (nothing)\n"
    return window.activity_activities(device.state)


def _package(device: Android, words: list[str]) -> str:
    names = [word for word in words if not word.startswith("-")]
    return (
        dump_package(device, names[0])
        if names
        else "".join(dump_package(device, name) for name in device.state.packages)
    )


def _diskstats(device: Android) -> str:
    free, total = device.system.free_data()
    percent = free * 100 // max(total, 1)
    return (
        "Latency: 1ms [512B Data Write]\nRecent Disk Write Speed (kB/s) = 104322\n"
        f"Data-Free: {free // 1024}K / {total // 1024}K total = {percent}% free\n"
        "Cache-Free: 100000K / 102400K total = 97% free\nSystem-Free: 200000K / 800000K total = 25% free\n"
        "File-based Encryption: true\n"
    )


_PLAIN: Mapping[str, Callable[[Android, list[str]], str]] = {
    "battery": lambda device, _words: power.battery(device.state),
    "power": lambda device, _words: power.power(device.state),
    "deviceidle": lambda device, _words: power.deviceidle(device.state),
    "thermalservice": lambda device, _words: power.thermalservice(device.state),
    "wifi": lambda device, _words: radio.wifi(device.state, device.network),
    "telephony.registry": lambda device, _words: radio.telephony_registry(device.state, device.network),
    "connectivity": lambda device, _words: radio.connectivity(device.state, device.network),
    "window": lambda device, _words: window.window(device.state),
    "display": lambda device, _words: window.display(device.state),
    "SurfaceFlinger": _surface,
    "activity": _activity,
    "package": _package,
    "media_session": lambda _device, _words: "MEDIA SESSION SERVICE (dumpsys media_session)\n\n0 sessions listeners.\n",
    "bluetooth_manager": lambda device, _words: (
        f"Bluetooth Status\n  enabled: {str(device.state.radios.bluetooth).lower()}\n"
        f"  state: {'ON' if device.state.radios.bluetooth else 'OFF'}\n  address: 02:00:00:00:00:00\n"
        f"  name: {device.state.bluetooth_name}\n"
    ),
    "location": lambda device, _words: (
        "Location Manager State:\n  Location Settings:\n"
        f"    [u0] location [enabled={str(device.state.settings['secure'].get('location_mode') != '0').lower()}]\n"
    ),
}


async def _dumpsys(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] == ["-t"]:
        words = words[2:]
    names = sorted({*_PLAIN, "diskstats", "netstats"})
    if words in (["-l"], []):
        await call.out("Currently running services:\n" + "".join(f"  {name}\n" for name in names))
        return 0
    name, *arguments = words
    if name == "diskstats":
        await call.out(_diskstats(device))
    elif name == "netstats":
        await call.out(radio.netstats(await device.network.counters()))
    elif name in {"battery", "deviceidle", "thermalservice"} and arguments and not arguments[0].startswith("-"):
        inner = CommandCall(
            [name, *arguments], call.streams, call.writers, cwd=call.cwd, env=call.env, uid=call.uid, root=call.root
        )
        return await SERVICES[name](device, inner)
    elif name in _PLAIN:
        await call.out(_PLAIN[name](device, arguments))
    else:
        await call.err(f"Can't find service: {name}\n")
    return 0


COMMANDS: dict[str, Command] = {"dumpsys": _dumpsys}
