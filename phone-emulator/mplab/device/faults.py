"""Cause faults on demand. The docstring of a fault is its description for users."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mplab.base.errors import InputError
from mplab.base.suggest import unknown
from mplab.device.android.commands.agents import kill_agents
from mplab.device.android.commands.cmd import set_airplane
from mplab.device.emulated import EmulatedDevice

Fault = Callable[..., Awaitable[dict[str, object] | None]]

_FULL_SLACK_BYTES = 64 * 1024


async def _offline(device: EmulatedDevice, *, seconds: float = 0.0) -> None:
    """Nothing is answered; after `seconds` it is back (0: until `clear`)."""
    device.adbd.silent = True
    await device.adbd.disconnect()
    if seconds:
        await asyncio.sleep(seconds)
        device.adbd.silent = False


async def _unauthorized(device: EmulatedDevice) -> None:
    """It has forgotten every host, and its user is away."""
    device.trust = "nobody"
    device.distrust()
    await device.adbd.disconnect()


async def _agent(device: EmulatedDevice) -> dict[str, object]:
    """The UI framework's program on it dies."""
    return {"killed": kill_agents(device.android)}


async def _adbd(device: EmulatedDevice, *, seconds: float = 1.0) -> None:
    """adbd dies and is back after `seconds`."""
    device.restart_adbd(seconds=seconds)


async def _reboot(device: EmulatedDevice, *, seconds: float = 5.0) -> None:
    """It reboots by itself; it takes `seconds`."""
    device.reboot(seconds=seconds)


async def _disk_full(device: EmulatedDevice) -> None:
    """``/data`` has no room left."""
    free, total = device.system.free_data()
    await device.system.resize_data(total - free + _FULL_SLACK_BYTES)


async def _slow(device: EmulatedDevice, *, seconds: float = 0.5) -> None:
    """Every message of adb waits `seconds`."""
    device.delay_s = seconds


async def _battery_low(device: EmulatedDevice, *, level: int = 4) -> None:
    """The battery is at `level` percent, and nothing charges it."""
    device.state.battery.level = level
    device.state.battery.plugged = "no"


async def _overheating(device: EmulatedDevice, *, status: int = 3, celsius: float = 48.0) -> None:
    """Thermal status `status` (3 is severe), the battery at `celsius`."""
    device.state.thermal_status = status
    device.state.battery.temperature_c = celsius


async def _root_withdrawn(device: EmulatedDevice) -> None:
    """su denies; adbd is no root any more."""
    device.state.rooted = False
    if device.state.adb_root:
        device.state.adb_root = False
        device.restart_adbd()


async def _package_updated(device: EmulatedDevice, *, package: str, version: str, version_code: int = 0) -> None:
    """An app is updated to another version, as stores do by night."""
    try:
        device.state.update_package(package, version, version_code or None)
    except KeyError:
        raise InputError(unknown("package", package, sorted(device.state.packages))) from None
    await device.android.processes.stop(package)
    device.state.screen.stop(package)


async def _package_removed(device: EmulatedDevice, *, package: str) -> None:
    """An app is not there any more."""
    if package not in device.state.packages:
        raise InputError(unknown("package", package, sorted(device.state.packages)))
    await device.android.processes.stop(package)
    device.state.screen.stop(package)
    del device.state.packages[package]


async def _airplane(device: EmulatedDevice) -> None:
    """Airplane mode is switched on by hand."""
    set_airplane(device.android, on=True)


async def _sim_removed(device: EmulatedDevice) -> None:
    """The SIM is out."""
    device.state.properties["gsm.sim.state"] = "ABSENT"
    device.state.radios.data = False
    device.android.radios.update()


async def _clock(device: EmulatedDevice, *, seconds: float = 120.0) -> None:
    """Its clock is `seconds` ahead of this machine's."""
    device.state.clock_offset_s = seconds


async def _screen_off(device: EmulatedDevice, *, locked: bool = True) -> None:
    """The display is off."""
    device.state.awake = False
    device.state.locked = locked


async def _clear(device: EmulatedDevice) -> None:
    """End all faults, except changes of packages."""
    model = device.state.model
    device.adbd.silent = False
    device.trust = "any" if device.trust == "nobody" else device.trust
    device.delay_s = 0.0
    await device.system.resize_data(model.storage)
    battery = device.state.battery
    battery.level, battery.temperature_c = model.battery.level, model.battery.temperature
    battery.plugged = model.battery.plugged
    device.state.thermal_status = 0
    device.state.rooted = model.root != "none"
    device.state.clock_offset_s = 0.0
    if not device.adbd.running:
        await device.adbd.start()


FAULTS: Mapping[str, Fault] = {
    "offline": _offline,
    "unauthorized": _unauthorized,
    "agent": _agent,
    "adbd": _adbd,
    "reboot": _reboot,
    "disk-full": _disk_full,
    "slow": _slow,
    "battery-low": _battery_low,
    "overheating": _overheating,
    "root-withdrawn": _root_withdrawn,
    "package-updated": _package_updated,
    "package-removed": _package_removed,
    "airplane": _airplane,
    "sim-removed": _sim_removed,
    "clock": _clock,
    "screen-off": _screen_off,
    "clear": _clear,
}
"""Name of each fault → function that causes it. ``clear`` ends faults."""


async def cause(device: EmulatedDevice, name: str, parameters: Mapping[str, Any]) -> dict[str, object]:
    """Cause a fault on a device. Return its result, which is empty for most faults.

    Raises:
        InputError: there is no such fault, a parameter is unknown, or a needed parameter is missing.
    """
    if name not in FAULTS:
        raise InputError(unknown("fault", name, FAULTS))
    known = parameters_of(name)
    for key in parameters:
        if key not in known:
            raise InputError(f"fault {name}: {unknown('parameter', key, known)}")
    needed = [key for key, default in known.items() if default is inspect.Parameter.empty and key not in parameters]
    if needed:
        raise InputError(f"fault {name}: parameter '{needed[0]}' is missing")
    return await FAULTS[name](device, **parameters) or {}


def parameters_of(name: str) -> dict[str, object]:
    """Return name → default of the parameters of the fault `name`; `inspect.Parameter.empty`: no default."""
    parameters = inspect.signature(FAULTS[name]).parameters.values()
    return {parameter.name: parameter.default for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}


def describe(name: str) -> str:
    """Return the description of the fault `name` for users: its docstring."""
    return inspect.getdoc(FAULTS[name]) or ""
