"""Render the output of ``dumpsys`` for battery, display power, doze and temperatures."""

from mplab.device.android.state import State

_FULL_CHARGE_UAH = 4_355_000
_STATUS_CHARGING, _STATUS_DISCHARGING, _STATUS_FULL = 2, 3, 5
_HEALTH_GOOD, _HEALTH_OVERHEAT = 2, 3
_OVERHEAT_C = 50


def battery(state: State) -> str:
    """Return the output of ``dumpsys battery``; it has the temperature in tenths of a degree and the voltage in mV."""
    battery = state.battery
    sdk = state.model.sdk
    charging = battery.plugged != "no"
    status = _STATUS_DISCHARGING
    if charging:
        status = _STATUS_FULL if battery.level == 100 else _STATUS_CHARGING
    health = _HEALTH_OVERHEAT if battery.temperature_c > _OVERHEAT_C else _HEALTH_GOOD
    lines = [
        f"AC powered: {str(battery.plugged == 'ac').lower()}",
        f"USB powered: {str(battery.plugged == 'usb').lower()}",
        f"Wireless powered: {str(battery.plugged == 'wireless').lower()}",
        *(["Dock powered: false"] if sdk >= 33 else []),
        f"Max charging current: {500000 if charging else 0}",
        f"Max charging voltage: {5000000 if charging else 0}",
        f"Charge counter: {_FULL_CHARGE_UAH * battery.level // 100}",
        f"status: {status}",
        f"health: {health}",
        "present: true",
        f"level: {battery.level}",
        "scale: 100",
        f"voltage: {3600 + battery.level * 7}",
        f"temperature: {round(battery.temperature_c * 10)}",
        "technology: Li-ion",
        *(["Charging state: 0", "Charging policy: 0"] if sdk >= 34 else []),
    ]
    return "Current Battery Service state:\n" + "".join(f"  {line}\n" for line in lines)


def power(state: State) -> str:
    """Return the output of ``dumpsys power``."""
    awake = "Awake" if state.awake else "Asleep" if state.model.sdk < 31 else "Dozing"
    plugged = {"ac": 1, "usb": 2, "wireless": 4}.get(state.battery.plugged, 0)
    stay_on = state.settings["global"].get("stay_on_while_plugged_in", "0")
    return (
        "POWER MANAGER (dumpsys power)\n\n"
        "Power Manager State:\n"
        "  mDirty=0x0\n"
        f"  mWakefulness={awake}\n"
        f"  mWakefulnessChanging=false\n"
        f"  mIsPowered={str(plugged > 0).lower()}\n"
        f"  mPlugType={plugged}\n"
        f"  mBatteryLevel={state.battery.level}\n"
        "  mDockState=0\n"
        f"  mStayOn={str(stay_on != '0' and plugged > 0).lower()}\n"
        "  mBootCompleted=true\n"
        f"  mHoldingWakeLockSuspendBlocker={str(state.awake).lower()}\n"
        f"  mHoldingDisplaySuspendBlocker={str(state.awake).lower()}\n"
        f"Display Power: state={'ON' if state.awake else 'OFF'}\n"
    )


def deviceidle(state: State) -> str:
    """Return the output of ``dumpsys deviceidle``."""
    deep = "IDLE" if state.idle_forced else "ACTIVE"
    names = "".join(f"    {name}\n" for name in sorted(state.doze_exempt))
    return (
        "  Settings:\n    light_after_inactive_to=+4m0s0ms\n"
        f"  Whitelist user apps:\n{names}"
        f"  mLightEnabled={str(state.doze_enabled).lower()}  mDeepEnabled={str(state.doze_enabled).lower()}\n"
        f"  mForceIdle={str(state.idle_forced).lower()}\n"
        f"  mScreenOn={str(state.awake).lower()}\n"
        f"  mState={deep} mLightState={'OVERRIDE' if state.idle_forced else 'ACTIVE'}\n"
    )


def thermalservice(state: State) -> str:
    """Return the output of ``dumpsys thermalservice``; temperatures in degrees Celsius."""
    skin = state.battery.temperature_c + 2
    return (
        "IsStatusOverride: false\n"
        "ThermalEventListeners:\n\tcallbacks: 2\n\tkilled: false\n\tbroadcasts count: -1\n"
        f"Thermal Status: {state.thermal_status}\n"
        "Cached temperatures:\n"
        f"\tTemperature{{mValue={skin:.1f}, mType=3, mName=VIRTUAL-SKIN, mStatus={state.thermal_status}}}\n"
        f"\tTemperature{{mValue={state.battery.temperature_c:.1f}, mType=2, mName=battery, mStatus=0}}\n"
        "HAL Ready: true\n"
        "HAL connection:\n\tThermalHAL 2.0 connected: yes\n"
        "Current temperatures from HAL:\n"
        f"\tTemperature{{mValue={skin:.1f}, mType=3, mName=VIRTUAL-SKIN, mStatus={state.thermal_status}}}\n"
        f"\tTemperature{{mValue={state.battery.temperature_c:.1f}, mType=2, mName=battery, mStatus=0}}\n"
        "Current cooling devices from HAL:\n"
    )
