"""The readiness check and the apps, on an emulated device and with its faults."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.apps import STORE, Apps
from mplab.drivers.phone.adb.condition import parse_condition, read_condition
from mplab.drivers.phone.adb.readiness import (
    check_ready,
    condition_problems,
    default_thresholds,
    measure_readiness,
    prepare,
)
from mplab.drivers.phone.settings import ReadyFile

from .apks import make_apk
from .conftest import wait_until

DROPBOX = "com.dropbox.android"
QUICK = ReadyFile.model_validate({"idle_for": "200 ms"})


@pytest.fixture(scope="module")
def phone(server: AdbServer, device: Device) -> Iterator[AdbPhone]:
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        yield phone


@pytest.fixture
def ailing(device: Device) -> Iterator[Device]:
    """A device for tests that inject faults; they are cleared afterwards."""
    yield device
    device.fault("clear")


def test_a_phone_that_is_fit(phone: AdbPhone) -> None:
    readiness = check_ready(phone, QUICK, {DROPBOX: "330.2.2"})
    assert readiness.problems == ()
    assert (readiness.condition.battery_percent, readiness.condition.temperature_c) == (92, 27.0)
    assert readiness.condition.thermal_status == 0
    assert readiness.condition.sims == ("LOADED",)
    assert readiness.condition.free_bytes is not None
    assert readiness.condition.free_bytes > 1e9
    assert readiness.condition.awake
    assert readiness.condition.locked is False
    assert readiness.addresses == {"wlan0": "192.168.49.2", "rmnet0": "10.176.0.2"}
    assert abs(readiness.clock.offset_s) <= readiness.clock.uncertainty_s + 0.5
    assert readiness.clock.reads == 7
    assert readiness.quic_open
    assert not readiness.ipv6_open
    assert readiness.to_json()["condition"] == asdict(readiness.condition)
    assert readiness.condition.battery_percent == 92


def refusal(phone: AdbPhone, apps: dict[str, str] | None = None) -> str:
    with pytest.raises(DeviceError) as caught:
        check_ready(phone, QUICK, apps)
    return str(caught.value)


def test_battery_low(phone: AdbPhone, ailing: Device) -> None:
    ailing.fault("battery-low", level=4)
    message = f"{phone.label}: is not ready: battery at 4 %, 20 % are needed, and nothing charges it"
    assert refusal(phone) == message


def test_thermal_throttling(phone: AdbPhone, ailing: Device) -> None:
    ailing.fault("overheating", status=3, celsius=48)
    message = refusal(phone)
    assert (
        "battery at 48 °C, 42 °C at most: let it cool down; Android throttles it (thermal status 3, 1 at most)"
        in message
    )
    assert message.startswith(f"{phone.label}: is not ready: ")


def test_storage_full(phone: AdbPhone, ailing: Device, tmp_path: Path) -> None:
    ailing.fault("disk-full")
    assert "0 MB free in /data, 200 MB are needed" in refusal(phone)
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    with pytest.raises(
        DeviceError, match=r"one \(.*/data/local/tmp/large could not be copied.*No space left on device"
    ):
        phone.push(tmp_path / "large", "/data/local/tmp/large")
    ailing.fault("clear")
    phone.script("rm -f /data/local/tmp/large")


def test_airplane_mode_and_a_missing_sim(phone: AdbPhone, ailing: Device) -> None:
    ailing.fault("airplane")
    wait_until(lambda: not any(ailing.state()["radios"][name] for name in ("wifi_up", "data_up")), "radios are off")
    message = refusal(phone)
    assert "it is in airplane mode" in message
    assert "no address on wifi (wlan0) and lte (rmnet0)" in message
    phone.script("cmd connectivity airplane-mode disable")
    wait_until(lambda: all(ailing.state()["radios"][name] for name in ("wifi_up", "data_up")), "radios are on")
    ailing.fault("sim-removed")
    assert "no SIM is ready (ABSENT)" in refusal(phone)
    phone.script("setprop gsm.sim.state LOADED; svc data enable")
    wait_until(lambda: ailing.state()["radios"]["data_up"], "data is up")


def test_a_clock_that_is_off(phone: AdbPhone, ailing: Device) -> None:
    ailing.fault("clock", seconds=-3600)
    assert "its clock is 3600." in refusal(phone) or "its clock is 3599." in refusal(phone)
    readiness = measure_readiness(phone, QUICK)
    assert readiness.clock.offset_s == pytest.approx(-3600, abs=readiness.clock.uncertainty_s + 2)


def test_screen_off_is_prepared_and_updates_too(server: AdbServer, phone: AdbPhone, ailing: Device) -> None:
    ailing.fault("screen-off")
    message = refusal(phone)
    assert "its screen is off" in message
    assert "its screen is locked" in message
    with AdbPhone("again", server, AdbSettings(serial=ailing.address)) as again:
        prepare(again)
        check_ready(again, QUICK)
        assert f"package:{STORE}" in again.script("pm list packages -d").stdout
        assert again.script("settings get global stay_on_while_plugged_in").stdout == "7\n"
        assert again.script("settings get global captive_portal_mode").stdout == "0\n"
        assert not Apps(again).stop_updates()
    assert f"package:{STORE}" in phone.script("pm list packages -e").stdout
    assert " enabled=0 " in phone.script(f"dumpsys package {STORE}").stdout, "as its own manifest says, as before"
    assert phone.script("settings get global captive_portal_mode").stdout == "1\n"
    assert phone.script("settings get global stay_on_while_plugged_in").stdout in {"0\n", "null\n"}


def test_network_that_is_not_idle(phone: AdbPhone, tmp_path: Path) -> None:
    flood = phone.spawn(["ping", "-i", "0.02", "-s", "1000", "192.168.49.1"], log=tmp_path / "ping")
    try:
        assert "its network is not idle: " in refusal(phone)
    finally:
        flood.stop()
    assert check_ready(phone, QUICK).idle_kbps is not None


def test_app_missing_or_of_another_version(phone: AdbPhone, ailing: Device) -> None:
    message = refusal(phone, {DROPBOX: "330.2.2", "org.mozilla.firefox": "120.0"})
    assert message == f"{phone.label}: is not ready: org.mozilla.firefox is not installed: install version 120.0"
    ailing.fault("package-updated", package=DROPBOX, version="331.1.1")
    message = f"{DROPBOX} has version 331.1.1, and the lab file says 330.2.2"
    assert message in refusal(phone, {DROPBOX: "330.2.2"})


def test_apps_are_installed_cleared_allowed_ended(phone: AdbPhone, tmp_path: Path) -> None:
    apps, apk = Apps(phone), tmp_path / "notes.apk"
    apk.write_bytes(make_apk("com.example.notes", "1.2", 12))
    assert apps.version("com.example.notes") == ""
    apps.install(apk)
    assert apps.version("com.example.notes") == "1.2"
    apps.grant("com.example.notes", "android.permission.CAMERA")
    apps.clear("com.example.notes")
    apps.force_stop("com.example.notes")
    assert phone.script("ls /data/local/tmp/notes.apk", check=False).exit_code != 0
    with pytest.raises(DeviceError, match=r"one \(.*com\.example\.none was not cleared.*Failed"):
        apps.clear("com.example.none")
    with pytest.raises(DeviceError, match="was not granted nonsense"):
        apps.grant("com.example.notes", "nonsense")
    apk.write_bytes(b"no apk")
    with pytest.raises(DeviceError, match=r"notes\.apk was not installed"):
        apps.install(apk)


CAMERA = "android.permission.CAMERA"


def granted(phone: AdbPhone, package: str) -> bool:
    return f"{CAMERA}: granted=true" in phone.script(f"dumpsys package {package}").stdout


def test_what_a_run_installs_and_allows_goes_with_it(server: AdbServer, device: Device, tmp_path: Path) -> None:
    apk, settings = tmp_path / "pad.apk", AdbSettings(serial=device.address)
    apk.write_bytes(make_apk("com.example.pad", "3.1", 31))
    with AdbPhone("one", server, settings) as phone:
        for _ in range(2):  # the second call keeps the installed app
            Apps(phone).provide("com.example.pad", apk, [CAMERA])
        assert Apps(phone).version("com.example.pad") == "3.1"
        Apps(phone).provide(DROPBOX, None, [CAMERA])
        assert granted(phone, DROPBOX)
    with AdbPhone("one", server, settings) as phone:
        assert Apps(phone).version("com.example.pad") == ""
        assert Apps(phone).version(DROPBOX)
        assert not granted(phone, DROPBOX)


def test_an_app_that_cannot_be_provided(server: AdbServer, device: Device, tmp_path: Path) -> None:
    apk = tmp_path / "pad.apk"
    apk.write_bytes(make_apk("com.example.pad", "3.1", 31))
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        apps = Apps(phone)
        with pytest.raises(LabNotReadyError, match=r"one \(.*com\.example\.none is not installed.*names no 'apk'"):
            apps.provide("com.example.none", None)
        with pytest.raises(LabNotReadyError, match=r"com\.example\.none is not installed, and there is no file"):
            apps.provide("com.example.none", tmp_path / "none.apk")
        with pytest.raises(LabNotReadyError, match=r"pad\.apk is the app com\.example\.pad, not com\.example\.none"):
            apps.provide("com.example.none", apk)
        assert apps.version("com.example.pad") == ""


@pytest.mark.parametrize("name", ["android-10", "android-16"])
def test_older_and_newer_androids_say_the_same(server: AdbServer, name: str) -> None:
    with (
        Device(DeviceSettings(phone=name, apps=False)) as other,
        AdbPhone("other", server, AdbSettings(serial=other.address)) as phone,
    ):
        condition = read_condition(phone.link)
        unknown = [key for key, value in vars(condition).items() if value is None]
        assert unknown == []
        assert condition.sim_ready
        assert condition_problems(condition, default_thresholds()) == []


def test_what_a_phone_does_not_say_is_not_held_against_it() -> None:
    silent = parse_condition({"battery": "Permission Denial", "sim": "LOADED,ABSENT\n"})
    assert silent.battery_percent is None
    assert condition_problems(silent, default_thresholds()) == []
