"""Define the properties, settings and kernel parameters of a phone after its first boot."""

from typing import TYPE_CHECKING

from mplab.device.android.model import PhoneModel

if TYPE_CHECKING:
    from mplab.device.android.state import State


def fingerprint(model: PhoneModel) -> str:
    """Return a phone's build fingerprint, like ``google/panther/panther:13/TQ3A.230605.012/1:user/release-keys``."""
    brand, product = model.manufacturer.lower(), model.product
    kind = "userdebug/test-keys" if model.root == "adb" else "user/release-keys"
    return f"{brand}/{product}/{product}:{model.android}/{model.build}/1:{kind}"


def boot_properties(state: "State") -> dict[str, str]:
    """Return name → value of the properties that ``getprop`` lists right after a boot."""
    model = state.model
    user = model.root != "adb"
    sims = model.sims
    present = [sim for sim in sims if sim.state != "ABSENT"]
    values = {
        "dalvik.vm.heapsize": "512m",
        "debug.sf.hwc.min.duration": "0",
        "dev.bootcomplete": "1",
        "gsm.current.phone-type": ",".join("1" for _sim in sims) or "0",
        "gsm.network.type": ",".join(sim.network for sim in present) or "Unknown",
        "gsm.nitz.time": "",
        "gsm.operator.alpha": ",".join(sim.operator for sim in present),
        "gsm.operator.iso-country": ",".join("us" for _sim in present),
        "gsm.operator.isroaming": ",".join("false" for _sim in present) or "false",
        "gsm.operator.numeric": ",".join(sim.numeric for sim in present),
        "gsm.sim.operator.alpha": ",".join(sim.operator for sim in present),
        "gsm.sim.operator.numeric": ",".join(sim.numeric for sim in present),
        "gsm.sim.state": ",".join(sim.state for sim in sims) or "ABSENT",
        "gsm.version.baseband": "g5300g-230511-230511-B-10122347",
        "init.svc.adbd": "running",
        "init.svc.bootanim": "stopped",
        "init.svc.surfaceflinger": "running",
        "init.svc.zygote": "running",
        "net.bt.name": "Android",
        "persist.sys.timezone": "UTC",
        "persist.sys.locale": "en-US",
        "persist.sys.usb.config": "adb",
        "ro.adb.secure": "1",
        "ro.bootmode": "unknown",
        "ro.boot.serialno": state.serial,
        "ro.boot.verifiedbootstate": "orange" if model.root != "none" else "green",
        "ro.boot.flash.locked": "0" if model.root != "none" else "1",
        "ro.bootimage.build.date.utc": "1686009600",
        "ro.build.characteristics": "nosdcard",
        "ro.build.date.utc": "1686009600",
        "ro.build.description": f"{model.product}-user {model.android} {model.build} 1 release-keys",
        "ro.build.display.id": model.build,
        "ro.build.fingerprint": fingerprint(model),
        "ro.build.id": model.build,
        "ro.build.product": model.product,
        "ro.build.tags": "release-keys" if user else "test-keys",
        "ro.build.type": "user" if user else "userdebug",
        "ro.build.version.codename": "REL",
        "ro.build.version.incremental": "1",
        "ro.build.version.release": str(model.android),
        "ro.build.version.sdk": str(model.sdk),
        "ro.build.version.security_patch": model.security_patch,
        "ro.config.ringtone": "mplab.ogg",
        "ro.debuggable": "0" if user else "1",
        "ro.hardware": model.product,
        "ro.kernel.version": ".".join(model.kernel.split(".")[:2]),
        "ro.product.board": model.product,
        "ro.product.brand": model.manufacturer.lower(),
        "ro.product.cpu.abi": state.abi,
        "ro.product.cpu.abilist": state.abi,
        "ro.product.cpu.abilist64": state.abi,
        "ro.product.device": model.product,
        "ro.product.locale": "en-US",
        "ro.product.manufacturer": model.manufacturer,
        "ro.product.model": model.model,
        "ro.product.name": model.product,
        "ro.secure": "1",
        "ro.serialno": state.serial,
        "ro.sf.lcd_density": str(model.screen.density),
        "ro.telephony.default_network": str(state.radios.preferred_network),
        "selinux.restorecon_recursive": "/data/misc_ce/0",
        "sys.boot_completed": "1",
        "sys.usb.config": "adb",
        "sys.usb.state": "adb",
        "vold.decrypt": "",
        "wifi.interface": "wlan0",
    }
    if model.android >= 11:
        values["ro.build.version.release_or_codename"] = str(model.android)
        values["ro.product.build.fingerprint"] = fingerprint(model)
    return {**{name: value for name, value in values.items() if value}, **model.properties}


def first_settings(state: "State") -> dict[str, dict[str, str]]:
    """Return the settings of a phone after its set-up: namespace of the command ``settings`` → name → value."""
    radios = state.radios
    first = {
        "global": {
            "adb_enabled": "1",
            "airplane_mode_on": str(int(radios.airplane)),
            "airplane_mode_radios": "cell,bluetooth,wifi,nfc,wimax",
            "animator_duration_scale": "1.0",
            "auto_time": "1",
            "auto_time_zone": "1",
            "bluetooth_on": str(int(radios.bluetooth)),
            "captive_portal_detection_enabled": "1",
            "captive_portal_mode": "1",
            "development_settings_enabled": "1",
            "device_name": state.model.model,
            "device_provisioned": "1",
            "low_power": "0",
            "mobile_data": str(int(radios.data)),
            "mobile_data_always_on": "1",
            "mode_ringer": "2",
            "preferred_network_mode": str(radios.preferred_network),
            "stay_on_while_plugged_in": "0",
            "transition_animation_scale": "1.0",
            "package_verifier_enable": "1",
            "verifier_verify_adb_installs": "1",
            "wifi_on": str(int(radios.wifi)),
            "wifi_scan_always_enabled": "0",
            "window_animation_scale": "1.0",
            "zen_mode": "0",
        },
        "system": {
            "accelerometer_rotation": "0",
            "font_scale": "1.0",
            "haptic_feedback_enabled": "1",
            "screen_brightness": "102",
            "screen_brightness_mode": "1",
            "screen_off_timeout": "30000",
            "sound_effects_enabled": "1",
            "user_rotation": "0",
            "volume_music": "5",
        },
        "secure": {
            "android_id": "3f2c1a9b7d5e6f80",
            "bluetooth_name": state.model.model,
            "default_input_method": "com.google.android.inputmethod.latin/com.android.inputmethod.latin.LatinIME",
            "enabled_input_methods": "com.google.android.inputmethod.latin/com.android.inputmethod.latin.LatinIME",
            "install_non_market_apps": "1",
            "location_mode": "3",
            "lock_screen_show_notifications": "1",
            "show_ime_with_hard_keyboard": "0",
            "user_setup_complete": "1",
        },
    }
    for namespace, values in state.model.settings.items():
        first[namespace].update(values)
    return first


_OUT_OF_TREE = {
    "mptcp_binder_gateways": "",
    "mptcp_checksum": "1",
    "mptcp_debug": "0",
    "mptcp_enabled": "1",
    "mptcp_path_manager": "fullmesh",
    "mptcp_scheduler": "default",
    "mptcp_syn_retries": "3",
    "mptcp_version": "0",
}
_SINCE = {"mptcp_scheduler": 88, "mptcp_version": 93}
"""Name of a kernel parameter → NN of the version 0.NN of the out-of-tree kernel that introduced it."""


def kernel_files(mptcp: str) -> dict[str, str]:
    """Return file name → content of the emulated files in ``/proc/sys/net/mptcp``.

    Only a phone whose Multipath TCP is ``out-of-tree 0.NN`` has emulated files. With ``none`` it has no files there;
    with ``upstream`` it has those of this machine's kernel.
    """
    if not mptcp.startswith("out-of-tree"):
        return {}
    version = int(mptcp.rpartition(".")[2])
    return {name: value for name, value in _OUT_OF_TREE.items() if version >= _SINCE.get(name, 0)}
