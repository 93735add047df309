"""Every fault that can be injected into a device, as stock adb sees it."""

import inspect
import time
from collections.abc import Iterator
from pathlib import Path

import adbutils
import pytest

from mplab.base.errors import DeviceError
from mplab.device import Device
from mplab.device.faults import FAULTS
from tests.device.conftest import Adb, quick_device, wait_until


@pytest.fixture
def device(adb: Adb, module_device: Device) -> Iterator[Device]:
    """A connected phone whose faults are cleared after the test."""
    if adb.state(module_device.address) != "device":
        adb.reconnect(module_device)
    yield module_device
    module_device.fault("clear")


@pytest.fixture(scope="module")
def module_device(tmp_path_factory: pytest.TempPathFactory, adbd: str) -> Iterator[Device]:
    with quick_device(tmp_path_factory.mktemp("phone"), root="adb") as device:
        yield device


def sh(adb: Adb, device: Device, command: str) -> str:
    result = adb("shell", command, serial=device.address)
    return (result.stdout + result.stderr).decode()


def test_offline(adb: Adb, device: Device) -> None:
    device.fault("offline")
    wait_until(lambda: adb.state(device.address) == "offline", "adb calls it offline")
    assert b"offline" in adb("shell", "true", serial=device.address).stderr
    device.fault("clear")
    adb.reconnect(device)
    assert sh(adb, device, "echo here") == "here\n"


def test_unauthorized(adb: Adb, device: Device) -> None:
    device.fault("unauthorized")
    adb("disconnect", device.address)
    adb("connect", device.address)
    wait_until(lambda: adb.state(device.address) == "unauthorized", "adb is not trusted any more")


def test_adbd_dies_and_returns(adb: Adb, device: Device) -> None:
    sh(adb, device, "echo kept > /data/local/tmp/kept; setsid sleep 4242 >/dev/null 2>&1 </dev/null &")
    device.fault("adbd", seconds=0.2)
    wait_until(lambda: adb.state(device.address) != "device", "adb has lost it")
    adb.reconnect(device)
    output = sh(adb, device, "cat /data/local/tmp/kept; pidof sleep >/dev/null && echo runs; killall sleep")
    assert output == "kept\nruns\n"


def test_reboot(adb: Adb, device: Device) -> None:
    sh(adb, device, "echo kept > /sdcard/kept; settings put global mplab_kept 1; svc wifi disable")
    forward = "sysctl -w net.ipv4.ip_forward=1 >/dev/null"
    assert sh(adb, device, f"su -c 'touch /dev/lost; {forward}; ip addr add 10.9.9.9/32 dev lo'") == ""
    pid = device.state()["system_pid"]
    device.fault("reboot", seconds=1)
    wait_until(lambda: device.state()["system_pid"] not in {0, pid}, "it boots")
    adb.reconnect(device)
    wait_until(lambda: sh(adb, device, "getprop sys.boot_completed") == "1\n", "it has booted")
    assert sh(adb, device, "cat /sdcard/kept; settings get global mplab_kept; ls /dev/lost").startswith("kept\n1\nls:")
    assert sh(adb, device, "cat /proc/sys/net/ipv4/ip_forward; ip addr show lo | grep -c 10.9.9.9") == "0\n0\n"
    wait_until(lambda: device.state()["radios"]["data_up"], "mobile data is back")
    assert not device.state()["radios"]["wifi_up"]
    sh(adb, device, "svc wifi enable")
    wait_until(lambda: device.state()["radios"]["wifi_up"], "WiFi is back")


def test_services_are_not_there_before_the_boot_is_complete(adb: Adb, device: Device) -> None:
    device.fault("reboot", seconds=3)
    wait_until(lambda: not device.state()["booted"], "it goes down")
    adb.reconnect(device)
    assert sh(adb, device, "settings get global wifi_on") == "cmd: Can't find service: settings\n"
    wait_until(lambda: device.state()["booted"], "it has booted")


def test_disk_full(adb: Adb, device: Device, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 1_000_000)
    device.fault("disk-full")
    result = adb("push", str(tmp_path / "large"), "/sdcard/large", serial=device.address)
    assert result.returncode == 1
    assert b"No space left on device" in result.stdout + result.stderr
    assert "No space left on device" in sh(adb, device, "cp /system/bin/sh /data/local/tmp/copy")
    assert "= 0% free" in sh(adb, device, "dumpsys diskstats") or "free" in sh(adb, device, "df /data")
    device.fault("clear")
    sh(adb, device, "rm -f /sdcard/large /data/local/tmp/copy")
    assert adb("push", str(tmp_path / "large"), "/sdcard/large", serial=device.address).returncode == 0


def test_slow(adb: Adb, device: Device) -> None:
    def duration() -> float:
        began = time.monotonic()
        sh(adb, device, "true")
        return time.monotonic() - began

    usual = min(duration() for _ in range(3))
    device.fault("slow", seconds=0.4)
    assert duration() > usual + 0.4


def test_battery_and_heat(adb: Adb, device: Device) -> None:
    device.fault("battery-low", level=4)
    device.fault("overheating", status=4, celsius=51.5)
    battery = sh(adb, device, "dumpsys battery")
    assert "  level: 4\n" in battery
    assert "  USB powered: false\n" in battery
    assert "  temperature: 515\n" in battery
    assert "  health: 3\n" in battery
    assert "Thermal Status: 4\n" in sh(adb, device, "dumpsys thermalservice")
    device.fault("clear")
    assert "  level: 92\n" in sh(adb, device, "dumpsys battery")


def test_root_withdrawn(adb: Adb, device: Device) -> None:
    assert sh(adb, device, "su -c 'id -u'") == "0\n"
    device.fault("root-withdrawn")
    assert sh(adb, device, "su -c 'id -u'; echo $?") == "13\nPermission denied\n"


def test_adb_root(adb: Adb, client: adbutils.AdbClient, device: Device) -> None:
    # adb root and adb unroot wait long for devices that come back by themselves, as devices on USB do.
    assert "restarting adbd as root" in client.device(device.address).root()
    wait_until(lambda: adb.state(device.address) != "device", "adbd goes")
    adb.reconnect(device)
    assert sh(adb, device, "id -u") == "0\n"
    assert adb("push", __file__, "/data/misc/x", serial=device.address).returncode == 0
    with client.device(device.address).open_transport() as transport:
        transport.send_command("unroot:")
        transport.check_okay()
        assert "restarting adbd as non root" in transport.read_until_close()
    wait_until(lambda: adb.state(device.address) != "device", "adbd goes")
    adb.reconnect(device)
    assert sh(adb, device, "id -u") == "2000\n"


def test_a_package_is_updated_and_removed(adb: Adb, device: Device) -> None:
    package = "com.dropbox.android"
    sh(adb, device, f"am start -n {package}/.activity.DbxMainActivity")
    assert sh(adb, device, f"pidof {package}").strip().isdigit()
    device.fault("package-updated", package=package, version="331.1.1", version_code=33110100)
    assert f"package:{package} versionCode:33110100\n" in sh(adb, device, "pm list packages --show-versioncode")
    assert sh(adb, device, f"pidof {package}") == ""
    device.fault("package-removed", package=package)
    assert "does not exist" in sh(adb, device, f"am start -n {package}/.activity.DbxMainActivity")


def test_sim_clock_airplane_screen(adb: Adb, device: Device) -> None:
    device.fault("clock", seconds=3600)
    assert float(sh(adb, device, "date +%s.%N")) == pytest.approx(time.time() + 3600, abs=30)
    device.fault("screen-off")
    assert "mWakefulness=Dozing" in sh(adb, device, "dumpsys power")
    sh(adb, device, "input keyevent WAKEUP; wm dismiss-keyguard")
    assert "mWakefulness=Awake" in sh(adb, device, "dumpsys power")
    device.fault("airplane")
    assert sh(adb, device, "settings get global airplane_mode_on; cmd connectivity airplane-mode") == "1\nenabled\n"
    wait_until(lambda: not any(device.state()["radios"][name] for name in ("wifi_up", "data_up")), "radios are off")
    sh(adb, device, "cmd connectivity airplane-mode disable")
    wait_until(lambda: all(device.state()["radios"][name] for name in ("wifi_up", "data_up")), "radios are on")


def test_a_fault_that_is_not_known_is_told(device: Device) -> None:
    with pytest.raises(DeviceError, match="'disk-full'"):
        device.fault("disk-fool")
    with pytest.raises(DeviceError, match="parameter 'package' is missing"):
        device.fault("package-updated", version="1")
    with pytest.raises(DeviceError, match="seconds"):
        device.fault("slow", second=1)


def test_every_fault_says_what_it_does() -> None:
    assert all(inspect.getdoc(fault) for fault in FAULTS.values())
