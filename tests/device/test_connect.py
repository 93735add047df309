"""Authorisation by keys, several devices and several hosts; and the state after a device is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import adbutils
import psutil
import pytest

from mplab.base.errors import DeviceError, InputError
from mplab.device import Device, DeviceSettings
from tests.device.conftest import Adb, start_adb, wait_until

pytestmark = pytest.mark.usefixtures("adbd")


def test_a_device_says_what_it_is(adb: Adb, phone: Device) -> None:
    listed = adb.text("devices", "-l")
    assert f"{phone.address}        device product:panther model:Pixel_7 device:panther" in listed
    assert set(adb.text("features", serial=phone.address).split()) >= {"shell_v2", "cmd", "stat_v2"}
    assert adb.text("shell", "getprop ro.serialno", serial=phone.address) == "EMU13A0001\n"


def test_a_host_that_is_not_trusted_stays_out(adb: Adb) -> None:
    with Device(DeviceSettings(trust="nobody")) as device:
        adb("connect", device.address)
        wait_until(lambda: adb.state(device.address) == "unauthorized", "adb is unauthorized")
        result = adb("shell", "id", serial=device.address)
        assert result.returncode != 0
        assert b"unauthorized" in result.stderr


def test_a_host_whose_key_is_listed_comes_in_at_once(adb: Adb) -> None:
    with Device(DeviceSettings(trust="listed", keys=(adb.key,))) as device:
        assert b"connected to" in adb("connect", device.address).stdout
        assert adb("shell", "exit 3", serial=device.address).returncode == 3


def test_another_key_does_not(adb: Adb, tmp_path: Path) -> None:
    with Device(DeviceSettings(trust="listed", keys=(adb.key,))) as device, start_adb(tmp_path) as other:
        other("connect", device.address)
        wait_until(lambda: other.state(device.address) == "unauthorized", "the other host is unauthorized")
        adb.connect(device)


def test_two_devices_at_once(adb: Adb, client: adbutils.AdbClient) -> None:
    old = DeviceSettings(phone="android-10")
    new = DeviceSettings(phone="android-16", serial="SECOND1")
    with Device(old) as first, Device(new) as second:
        for device in (first, second):
            adb.connect(device)
        models = {serial: client.device(serial).prop.model for serial in (first.address, second.address)}
        assert models == {first.address: "Pixel 3a", second.address: "Pixel 9"}
        assert adb.text("shell", "getprop ro.serialno", serial=second.address) == "SECOND1\n"
        adb("shell", "echo only here > /sdcard/x", serial=first.address)
        assert adb("shell", "test -e /sdcard/x", serial=second.address).returncode == 1
        first.stop()
        assert adb("shell", "true", serial=second.address).returncode == 0


def test_a_device_that_is_killed_leaves_nothing() -> None:
    mounts = Path("/proc/self/mounts").read_text()
    device = Device(DeviceSettings(phone="android-10"))
    device.start()
    children = psutil.Process(device.pid).children(recursive=True)
    assert len(children) >= 2
    os.kill(device.pid, signal.SIGKILL)
    _gone, alive = psutil.wait_procs(children, timeout=10)
    device.stop()
    assert not alive
    assert Path("/proc/self/mounts").read_text() == mounts
    assert device.facts["control"] not in Path("/proc/net/unix").read_text()


def test_a_device_goes_with_what_has_started_it(tmp_path: Path) -> None:
    program = (
        "import time\nfrom mplab.device import Device\n"
        "with Device() as device:\n    print(device.pid, flush=True)\n    time.sleep(600)\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    starter.kill()
    starter.communicate()
    wait_until(lambda: not psutil.pid_exists(pid), "the device has ended")


def test_a_port_that_is_taken_is_told() -> None:
    with (
        Device(DeviceSettings(phone="android-10")) as first,
        pytest.raises(DeviceError, match="Address already in use"),
    ):
        Device(DeviceSettings(phone="android-10", port=first.facts["port"])).start()


def test_a_phone_that_is_not_there_is_told() -> None:
    with pytest.raises(InputError, match="android-99"):
        Device(DeviceSettings(phone="android-99")).start()
