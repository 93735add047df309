"""Faults of a phone: each gives one clear message with the serial, and the recovery ladder ends it."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.link import Link, only_serial
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.phone.adb.recovery import Patience, Recovery
from mplab.drivers.phone.adb.root import Root
from mplab.drivers.ui.android import AndroidSettings
from mplab.drivers.ui.uiautomator2 import uiautomator2_session

from .conftest import quick_device, wait_until

QUICK = Patience(reconnect_s=1.0, transport_s=15.0, reboot_s=30.0, down_s=10.0)


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Device]:
    with quick_device(tmp_path_factory.mktemp("phone"), root="adb") as device:
        yield device


@pytest.fixture
def phone(server: AdbServer, device: Device) -> Iterator[AdbPhone]:
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        yield phone
        device.fault("clear")


def test_no_phone(server: AdbServer, tmp_path: Path) -> None:
    with AdbServer(tmp_path) as empty, pytest.raises(LabNotReadyError, match=r"one: no phone: plug one in"):
        only_serial(empty, "one", timeout_s=0.3)
    with pytest.raises(LabNotReadyError, match=r"127\.0\.0\.1:1: not there after 0\.5 s: nothing answers at this addr"):
        Link(server, "127.0.0.1:1").connect(0.5)
    with pytest.raises(LabNotReadyError, match=r"0A1B2C: not there after 0\.2 s: is it plugged in"):
        Link(server, "0A1B2C").connect(0.2)


def test_unauthorized(server: AdbServer) -> None:
    with Device(DeviceSettings(phone="android-10", trust="nobody", apps=False)) as stranger:
        message = rf"{stranger.address}: has not allowed this host: unlock its screen and allow USB debugging"
        with pytest.raises(LabNotReadyError, match=message):
            Link(server, stranger.address).connect(2.0)
        server.client.disconnect(stranger.address)


def test_a_phone_that_knows_the_users_key_comes_in_at_once(phone: AdbPhone, tmp_path: Path) -> None:
    key = phone.link.server.home / ".android" / "adbkey"
    public = key.with_suffix(".pub").read_text().strip()
    with (
        Device(DeviceSettings(phone="android-10", trust="listed", keys=(public,), apps=False)) as careful,
        AdbServer(tmp_path, keys=(key,)) as known,
    ):
        Link(known, careful.address).connect(10)


def test_lost_in_the_middle(phone: AdbPhone, device: Device, tmp_path: Path) -> None:
    process = phone.spawn(["sleep", "600"], log=tmp_path / "log")
    failed: list[BaseException] = []

    def wait() -> None:
        try:
            phone.shell(["sleep", "20"])
        except DeviceError as error:
            failed.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    device.fault("offline")
    thread.join(10)
    assert str(failed[0]).startswith(f"one ({device.address}): was lost: adb says: ")
    assert process.wait(10) == 255
    with pytest.raises(DeviceError, match=rf"one \({device.address}\): .*adb says: "):
        phone.shell(["true"])
    device.fault("clear")
    assert Recovery(phone, patience=Patience()).recover("it was lost").rung == "reconnect"
    assert phone.shell(["id", "-u"]).stdout == "0\n"
    gone = ["test", "!", "-e", f"/proc/{process.pid}"]
    wait_until(lambda: phone.shell(gone, check=False).exit_code == 0, "what it ran has ended")


def test_root_withdrawn(phone: AdbPhone, device: Device) -> None:
    assert phone.root is Root.SU_C
    device.fault("root-withdrawn")
    message = rf"one \({device.address}\): root was withdrawn \('su -c' no longer works\): allow it again"
    with pytest.raises(DeviceError, match=message):
        phone.sysctl({"net.ipv4.ip_forward": 1})
    device.fault("clear")


def test_adb_root_and_back(server: AdbServer, device: Device) -> None:
    with AdbPhone("root", server, AdbSettings(serial=device.address, root="adb")) as rooted:
        assert rooted.root is Root.ADBD
        assert rooted.link.run("id -u").stdout == b"0\n"
    link = Link(server, device.address)
    link.connect()
    assert link.run("id -u").stdout == b"2000\n"


def test_root_that_was_asked_for_and_is_not_there(server: AdbServer) -> None:
    with (
        Device(DeviceSettings(phone="android-16", apps=False)) as plain,
        pytest.raises(LabNotReadyError, match=r"'root: su' is set, but su gives no root access"),
    ):
        AdbPhone("plain", server, AdbSettings(serial=plain.address, root="su")).__enter__()


def test_rung_ui_agent(phone: AdbPhone, device: Device, tmp_path: Path) -> None:
    """Let the UI server of another adb connection hold the screen, which connecting again does not end."""
    with AdbServer(tmp_path) as other:
        Link(other, device.address).connect()
        with uiautomator2_session(other.client.device(device.address), AndroidSettings()) as ui:
            ui.hierarchy()
            result = Recovery(phone, lambda: not device.state()["agents"], patience=QUICK).recover("it is stuck")
    assert (result.rung, result.tried) == ("ui agent", ("reconnect", "ui agent"))


def test_ui_agent_that_dies_is_started_again(phone: AdbPhone, device: Device) -> None:
    with uiautomator2_session(phone.adb, AndroidSettings(), "one") as ui:
        ui.hierarchy()
        assert device.fault("agent")["killed"]
        result = Recovery(phone, lambda: "<" in ui.hierarchy(), patience=QUICK).recover("the screen does not answer")
        assert result.rung in {"reconnect", "ui agent"}


def test_rung_transport(phone: AdbPhone, device: Device) -> None:
    device.fault("adbd", seconds=3.0)
    wait_until(lambda: phone.link.state() != "device", "adb has lost it")
    result = Recovery(phone, patience=QUICK).recover("adb has lost it")
    assert result.rung == "transport"
    assert phone.shell(["id", "-u"]).stdout == "0\n"


def test_rung_reboot(phone: AdbPhone) -> None:
    phone.script("touch /dev/broken")

    def works() -> bool:
        return phone.script("test ! -e /dev/broken", check=False).exit_code == 0

    result = Recovery(phone, works, patience=QUICK).recover("something is stuck")
    assert (result.rung, result.tried) == ("reboot", ("reconnect", "ui agent", "transport", "reboot"))
    phone.keep("after", "the folder is there")


def test_rung_quarantine(server: AdbServer, device: Device) -> None:
    quarantine = Quarantine(server.home / "quarantine")
    message = rf"in quarantine since .*Z: it is odd; tried: .*phone release {device.address}'"
    with (
        AdbPhone("one", server, AdbSettings(serial=device.address)) as phone,
        pytest.raises(LabNotReadyError, match=message),
    ):
        Recovery(phone, lambda: False, patience=QUICK).recover("it is odd")
    with pytest.raises(LabNotReadyError, match=rf"one \({device.address}\): in quarantine since .*: it is odd"):
        AdbPhone("one", server, AdbSettings(serial=device.address)).__enter__()
    assert [entry.serial for entry in quarantine.all()] == [device.address]
    assert quarantine.release(device.address)
    assert not quarantine.release(device.address)
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        assert phone.rooted


def fail_with_a_change(phone: AdbPhone) -> None:
    with phone:
        phone.register("one: a change", "false")
        raise DeviceError("x", "something else")


def test_what_cannot_be_undone_is_quarantined(server: AdbServer, device: Device) -> None:
    quarantine = Quarantine(server.home / "quarantine")
    with pytest.raises(DeviceError, match="something else") as caught:
        fail_with_a_change(AdbPhone("one", server, AdbSettings(serial=device.address)))
    assert "not undone: one: a change: one (" in caught.value.__notes__[0]
    entry = quarantine.find(device.address)
    assert entry is not None
    assert entry.reason.startswith("not undone: one: a change")
    quarantine.release(device.address)
