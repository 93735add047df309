"""Check whether a phone is ready for a cell, and report every reason why it is not."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from mplab.base.errors import DeviceError
from mplab.base.paths import INTERFACES
from mplab.drivers.phone.adb.apps import Apps
from mplab.drivers.phone.adb.condition import ClockOffset, Condition, measure_clock, read_condition
from mplab.drivers.phone.adb.phone import AdbPhone
from mplab.drivers.phone.adb.routing import Routing
from mplab.drivers.phone.settings import ReadyFile

_WAKE = "input keyevent KEYCODE_WAKEUP; wm dismiss-keyguard"
_STAY_ON = "stay_on_while_plugged_in"
_ALWAYS = "7"
"""Stay on with any charger: sum of the bits AC 1, USB 2, wireless 4 (``BatteryManager``)."""
_CAPTIVE_PORTAL, _IGNORE = "captive_portal_mode", "0"
"""``Settings.Global.CAPTIVE_PORTAL_MODE_IGNORE``; NetworkMonitor reads it when a network connects."""


@dataclass(frozen=True)
class Readiness:
    """Result of the readiness check.

    Attributes:
        condition: condition of the phone.
        clock: offset of the phone's clock.
        idle_kbps: traffic rate of WiFi and cellular together, both directions, while no scenario ran, kbit/s; None: not
            measured.
        addresses: interface (``wlan0``, ``rmnet0``) → IPv4 address.
        apps: package → installed version.
        quic_open: True if apps can use QUIC, which bypasses the transport; also True without root, because mplab cannot
            check it then.
        ipv6_open: True if apps can send over IPv6, which bypasses the transport.
        problems: reasons why the phone is not ready, one sentence each; empty when it is ready.
    """

    condition: Condition
    clock: ClockOffset
    idle_kbps: float | None
    addresses: Mapping[str, str]
    apps: Mapping[str, str]
    quic_open: bool
    ipv6_open: bool
    problems: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return all fields as a dictionary, for ``cell.json``."""
        return asdict(self)


def default_thresholds() -> ReadyFile:
    """Return the thresholds for a phone whose lab file sets none."""
    return ReadyFile.model_validate({})


def prepare(phone: AdbPhone) -> None:
    """Wake the phone and keep it awake; disable automatic updates and Android's Internet checks of WiFi networks.

    With these checks, Android would leave a WiFi network that has no Internet access. All changes are undone when the
    phone is released.

    Raises:
        DeviceError: the phone refused a command.
    """
    phone.put_setting(_STAY_ON, _ALWAYS)
    phone.put_setting(_CAPTIVE_PORTAL, _IGNORE)
    phone.script(_WAKE)
    Apps(phone).stop_updates()


def measure_readiness(phone: AdbPhone, thresholds: ReadyFile, apps: Mapping[str, str] | None = None) -> Readiness:
    """Measure the condition, clock and traffic of a phone; list every reason why it is not ready for a cell.

    Args:
        phone: phone to check.
        thresholds: limits that the phone must meet.
        apps: package → required version.

    Raises:
        DeviceError: the phone was lost.
    """
    phone.refresh()
    first = read_condition(phone.link)
    idle = _idle_kbps(phone, first, thresholds.idle_for)
    clock = measure_clock(phone.link)
    versions = Apps(phone).versions(apps or {})
    addresses = dict(phone.interfaces)
    routing = Routing(phone)
    problems = [
        *condition_problems(first, thresholds),
        *_network_problems(addresses, idle, thresholds),
        *_clock_problems(clock, thresholds),
        *version_problems(versions, apps or {}),
    ]
    return Readiness(first, clock, idle, addresses, versions, routing.quic_open(), routing.ipv6_open(), tuple(problems))


def check_ready(phone: AdbPhone, thresholds: ReadyFile, apps: Mapping[str, str] | None = None) -> Readiness:
    """Return the result of `measure_readiness`; raise DeviceError if the phone is not ready.

    Raises:
        DeviceError: the phone is not ready (the message has every reason), or was lost.
    """
    readiness = measure_readiness(phone, thresholds, apps)
    if readiness.problems:
        raise DeviceError(phone.label, f"is not ready: {'; '.join(readiness.problems)}")
    return readiness


def condition_problems(condition: Condition, limits: ReadyFile) -> list[str]:
    """Return one sentence for each value of `condition` that violates its threshold in `limits`.

    Unknown values are accepted, except that a SIM whose state is unknown does not count as ready.
    """
    problems = []
    if condition.battery_percent is not None and condition.battery_percent < limits.battery:
        charged = "" if condition.plugged else ", and nothing charges it"
        problems.append(f"battery at {condition.battery_percent} %, {limits.battery} % are needed{charged}")
    if condition.temperature_c is not None and condition.temperature_c > limits.temperature:
        problems.append(
            f"battery at {condition.temperature_c:g} °C, {limits.temperature:g} °C at most: let it cool down"
        )
    if condition.thermal_status is not None and condition.thermal_status > limits.thermal_status:
        problems.append(
            f"Android throttles it (thermal status {condition.thermal_status}, {limits.thermal_status} at most): "
            "let it cool down"
        )
    if condition.free_bytes is not None and condition.free_bytes < limits.storage:
        free, needed = condition.free_bytes / 1e6, limits.storage / 1e6
        problems.append(f"{free:.0f} MB free in /data, {needed:.0f} MB are needed: delete something")
    if condition.awake is False:
        problems.append("its screen is off")
    if condition.locked:
        problems.append("its screen is locked: remove its PIN, pattern or password")
    if condition.airplane:
        problems.append("it is in airplane mode")
    if limits.sim and not condition.sim_ready:
        problems.append(f"no SIM is ready ({', '.join(condition.sims) or 'none'})")
    return problems


def version_problems(installed: Mapping[str, str], required: Mapping[str, str]) -> list[str]:
    """Return one sentence for each app that is missing or has another version than `required`."""
    problems = []
    for package, version in required.items():
        if not installed.get(package):
            problems.append(f"{package} is not installed: install version {version}")
        elif installed[package] != version:
            problems.append(f"{package} has version {installed[package]}, and the lab file says {version}")
    return problems


def _network_problems(addresses: Mapping[str, str], idle_kbps: float | None, limits: ReadyFile) -> list[str]:
    problems = []
    missing = [f"{path} ({role})" for path, role in INTERFACES.items() if role not in addresses]
    if limits.interfaces and missing:
        problems.append(f"no address on {' and '.join(missing)}")
    if idle_kbps is not None and idle_kbps > limits.idle_rate:
        problems.append(
            f"its network is not idle: {idle_kbps:.0f} kbit/s, {limits.idle_rate} at most: something updates or syncs"
        )
    return problems


def _clock_problems(clock: ClockOffset, limits: ReadyFile) -> list[str]:
    if abs(clock.offset_s) <= limits.clock_offset:
        return []
    direction = "ahead" if clock.offset_s > 0 else "behind"
    return [
        f"its clock is {abs(clock.offset_s):.1f} s {direction}, {limits.clock_offset:g} s at most: set it by the "
        "network"
    ]


def _idle_kbps(phone: AdbPhone, before: Condition, for_s: float) -> float | None:
    if not for_s:
        return None
    began = time.monotonic()
    time.sleep(for_s)
    after = read_condition(phone.link)
    took_s = time.monotonic() - began
    devices = phone.devices.values()
    moved = sum(after.traffic_bytes.get(name, 0) - before.traffic_bytes.get(name, 0) for name in devices)
    if moved < 0:
        raise DeviceError(phone.label, "its interfaces' counters went back: it has rebooted, or a radio was switched")
    return moved * 8 / took_s / 1000
