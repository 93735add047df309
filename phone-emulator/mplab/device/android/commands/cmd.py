"""Answer ``svc``, which switches radios, and ``cmd``, which calls Android's services."""

from collections.abc import Awaitable, Callable

from mplab.device.android.android import Android, Command
from mplab.device.android.commands.am import activity_command
from mplab.device.android.commands.pm import package_command
from mplab.device.android.commands.settings import settings
from mplab.device.android.dumps.radio import wifi_status
from mplab.device.calls import CommandCall, CommandError

_FIRST_AIRPLANE_SDK, _FIRST_WIFI_SDK = 30, 30
_ABOUT = {
    "wifi": "Control the Wi-Fi manager",
    "data": "Control mobile data connectivity",
    "power": "Control the power manager",
    "bluetooth": "Control Bluetooth service",
    "usb": "Control Usb state",
    "nfc": "Control NFC functions",
}


async def _svc(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if not words:
        lines = "".join(f"    {name:<12}{text}\n" for name, text in sorted(_ABOUT.items()))
        await call.err(f"Available commands:\n    help        Show information about the subcommands\n{lines}")
        return 1
    service, verb = words[0], words[1] if len(words) > 1 else ""
    if service not in _ABOUT:
        raise CommandError(f"Invalid command: {service}", 1)
    if service == "power":
        return await _power(device, call, words[1:])
    if verb not in {"enable", "disable"}:
        raise CommandError(f"{_ABOUT[service]}\n\nusage: svc {service} [enable|disable]", 1)
    switch(device, service, on=verb == "enable")
    return 0


def switch(device: Android, radio: str, *, on: bool) -> None:
    """Switch the radio ``wifi``, ``data`` or ``bluetooth`` on or off. Its interface goes up or down after a delay."""
    radios, settings_of = device.state.radios, device.state.settings["global"]
    if radio == "wifi":
        radios.wifi = on
        settings_of["wifi_on"] = str(int(on))
    elif radio == "data":
        radios.data = on
        settings_of["mobile_data"] = str(int(on))
    elif radio == "bluetooth":
        radios.bluetooth = on
        settings_of["bluetooth_on"] = str(int(on))
    device.state.log.add("svc", f"{radio} {'enabled' if on else 'disabled'}")
    device.radios.update()


async def _power(device: Android, call: CommandCall, words: list[str]) -> int:
    if words[:1] == ["stayon"]:
        value = {"true": "15", "false": "0", "usb": "2", "ac": "1", "wireless": "4"}.get(
            words[1] if len(words) > 1 else ""
        )
        if value is None:
            raise CommandError("usage: svc power stayon [true|false|usb|ac|wireless|dock]", 1)
        device.state.settings["global"]["stay_on_while_plugged_in"] = value
        if value != "0":
            device.state.awake = True
    elif words[:1] == ["reboot"]:
        device.reboot(" ".join(words[1:]))
    elif words[:1] == ["shutdown"]:
        device.reboot("poweroff")
    else:
        raise CommandError("Control the power manager\n\nusage: svc power stayon [true|false|usb|ac|wireless|dock]", 1)
    await call.out("")
    return 0


async def _cmd(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words == ["-l"]:
        await call.out("Currently running services:\n" + "".join(f"  {name}\n" for name in sorted(SERVICES)))
        return 0
    service = SERVICES.get(words[0]) if words else None
    if service is None:
        raise CommandError(
            f"cmd: Can't find service: {words[0]}"
            if words
            else "cmd: No service specified; use -l to list all services.",
            20,
        )
    inner = CommandCall(words, call.streams, call.writers, cwd=call.cwd, env=call.env, uid=call.uid, root=call.root)
    return await service(device, inner)


async def _connectivity(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    radios = device.state.radios
    if words[:1] != ["airplane-mode"] or device.state.model.sdk < _FIRST_AIRPLANE_SDK:
        raise CommandError("Connectivity service commands:\n  help\n  airplane-mode [enable|disable]\n", 255)
    if len(words) == 1:
        await call.out("enabled\n" if radios.airplane else "disabled\n")
        return 0
    if words[1] not in {"enable", "disable"}:
        raise CommandError("", 255)
    set_airplane(device, on=words[1] == "enable")
    return 0


def set_airplane(device: Android, *, on: bool) -> None:
    """Switch airplane mode on or off.

    When it is switched on, WiFi, Bluetooth and mobile data go off. When it is switched off, they return to their
    previous states.
    """
    radios, state = device.state.radios, device.state
    if on and not radios.airplane:
        state.before_airplane = (radios.wifi, radios.bluetooth)
        switch(device, "wifi", on=False)
        switch(device, "bluetooth", on=False)
    elif not on and radios.airplane:
        wifi, bluetooth = state.before_airplane
        switch(device, "wifi", on=wifi)
        switch(device, "bluetooth", on=bluetooth)
    radios.airplane = on
    state.settings["global"]["airplane_mode_on"] = str(int(on))
    device.radios.update()


async def _wifi(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    state = device.state
    if state.model.sdk < _FIRST_WIFI_SDK:
        raise CommandError("No shell command implementation.", 255)
    if words[:1] == ["status"]:
        await call.out(wifi_status(state, device.network))
    elif words[:1] == ["set-wifi-enabled"] and words[1:2] in (["enabled"], ["disabled"]):
        switch(device, "wifi", on=words[1] == "enabled")
    elif words[:1] in (["list-scan-results"], ["start-scan"]):
        if words[0] == "list-scan-results" and state.model.wifi is not None and state.radios.wifi:
            wifi = state.model.wifi
            await call.out(
                "    BSSID              Frequency      RSSI           Age(sec)     SSID"
                "                                 Flags\n"
                f"  {wifi.bssid}       {wifi.frequency_mhz}    {wifi.rssi_dbm}           1.234    {wifi.ssid:<36} "
                "[WPA2-PSK-CCMP][ESS]\n"
            )
    elif words[:1] == ["list-networks"]:
        lines = [f"0            {state.model.wifi.ssid:<33}wpa2-psk\n"] if state.model.wifi else []
        await call.out("".join(["Network Id      SSID                         Security type\n", *lines]))
    elif words[:1] == ["connect-network"] and len(words) >= 3:
        if state.model.wifi is None or words[1] != state.model.wifi.ssid:
            raise CommandError("Connection failed with error code 2", 255)
        switch(device, "wifi", on=True)
        await call.out("Connection initiated \n")
    elif words[:1] in (["force-country-code"], ["set-scan-always-available"], ["set-verbose-logging"]):
        await call.out("")
    else:
        raise CommandError(f"Unknown command: {' '.join(words)}", 255)
    return 0


async def _phone(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] == ["set-allowed-network-types-for-users"] and len(words) > 1:
        device.state.allowed_network_types = int(words[-1], 2)
    elif words[:1] == ["get-allowed-network-types-for-users"]:
        await call.out(f"{device.state.allowed_network_types:b}\n")
    elif words[:2] == ["data", "enable"] or words[:2] == ["data", "disable"]:
        switch(device, "data", on=words[1] == "enable")
    else:
        raise CommandError(f"Unknown command: {' '.join(words[:1])}", 255)
    return 0


async def _statusbar(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] and words[0] in {"expand-notifications", "expand-settings", "collapse", "send-disable-flag"}:
        device.state.log.add("StatusBar", words[0])
        return 0
    raise CommandError("Status bar commands:\n  help\n  expand-notifications\n  collapse\n", 255)


async def _bluetooth(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] not in (["enable"], ["disable"]):
        raise CommandError("Bluetooth Manager Commands:\n  help\n  enable\n  disable\n", 255)
    switch(device, "bluetooth", on=words[0] == "enable")
    return 0


async def _deviceidle(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    state = device.state
    if words[:1] == ["whitelist"]:
        for word in words[1:]:
            (state.doze_exempt.add if word.startswith("+") else state.doze_exempt.discard)(word[1:])
            await call.out(f"Added: {word[1:]}\n" if word.startswith("+") else f"Removed: {word[1:]}\n")
        if len(words) == 1:
            await call.out("".join(f"user,{name},10001\n" for name in sorted(state.doze_exempt)))
    elif words[:1] == ["force-idle"]:
        state.idle_forced = True
        await call.out("Now forced in to deep idle mode\n")
    elif words[:1] in (["unforce"], ["step"]):
        state.idle_forced = False
        await call.out("Light state: ACTIVE, deep state: ACTIVE\n")
    elif words[:1] in (["disable"], ["enable"]):
        state.doze_enabled = words[0] == "enable"
        word = f"{words[0]}d"
        await call.out(f"Deep idle mode {word}\nLight idle mode {word}\n")
    elif words[:1] == ["get"]:
        await call.out("IDLE\n" if state.idle_forced else "ACTIVE\n")
    else:
        raise CommandError("Device idle controller (deviceidle) commands:\n  help\n", 255)
    return 0


async def _battery(device: Android, call: CommandCall) -> int:
    """Answer ``cmd battery …``, and ``dumpsys battery …`` with a subcommand like ``set``, which does the same.

    Raises:
        CommandError: the subcommand is unknown.
    """
    words = call.argv[1:]
    battery, model = device.state.battery, device.state.model.battery
    if words[:1] == ["unplug"]:
        battery.plugged = "no"
    elif words[:1] == ["reset"]:
        battery.level, battery.temperature_c, battery.plugged = model.level, model.temperature, model.plugged
    elif words[:1] == ["set"] and len(words) == 3:
        key, value = words[1], int(words[2])
        if key == "level":
            battery.level = value
        elif key == "temp":
            battery.temperature_c = value / 10
        elif key in {"ac", "usb", "wireless"}:
            battery.plugged = key if value else "no"
    elif words[:1] == ["get"] and len(words) == 2:
        values = {"level": battery.level, "temp": round(battery.temperature_c * 10), "present": "true"}
        await call.out(f"{values.get(words[1], '')}\n")
    else:
        raise CommandError("Battery service (battery) commands:\n  help\n", 255)
    return 0


async def _uimode(device: Android, call: CommandCall) -> int:
    await call.out("Night mode: no\n")
    device.state.log.add("UiModeManager", " ".join(call.argv[1:]))
    return 0


async def _thermal(device: Android, call: CommandCall) -> int:
    words = call.argv[1:]
    if words[:1] == ["override-status"] and len(words) > 1:
        device.state.thermal_status = int(words[1])
    elif words[:1] == ["reset"]:
        device.state.thermal_status = 0
    else:
        raise CommandError("Thermal service (thermalservice) commands:\n  help\n", 255)
    return 0


Service = Callable[[Android, CommandCall], Awaitable[int]]

SERVICES: dict[str, Service] = {
    "activity": activity_command,
    "battery": _battery,
    "bluetooth_manager": _bluetooth,
    "connectivity": _connectivity,
    "deviceidle": _deviceidle,
    "package": package_command,
    "phone": _phone,
    "settings": settings,
    "statusbar": _statusbar,
    "thermalservice": _thermal,
    "uimode": _uimode,
    "wifi": _wifi,
}

COMMANDS: dict[str, Command] = {"svc": _svc, "cmd": _cmd}
