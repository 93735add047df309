"""The HTTP proxy in the settings of an emulated device: set, restored, refused, restored by a later process."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.errors import DeviceError
from mplab.base.undo import UndoJournal
from mplab.device import Device
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb import systemproxy as module
from mplab.drivers.phone.adb.systemproxy import SystemProxy

AGENT = "127.0.0.1:8118"


@pytest.fixture
def phone(server: AdbServer, device: Device) -> Iterator[AdbPhone]:
    with AdbPhone("one", server, AdbSettings(serial=device.address, root="none")) as phone:
        yield phone


def told(phone: AdbPhone) -> str:
    """Return the address of the proxy that apps use."""
    keys = ("global_http_proxy_host", "global_http_proxy_port")
    return ":".join(phone.script(f"settings get global {key}").stdout.strip() for key in keys)


def test_apps_are_told_as_long_as_it_is_needed(phone: AdbPhone) -> None:
    proxy = SystemProxy(phone)
    for _ in range(2):
        with proxy.set(AGENT):
            assert told(phone) == AGENT
        assert told(phone) == ":0"


def test_the_users_own_proxy_comes_back(server: AdbServer, device: Device) -> None:
    with AdbPhone("one", server, AdbSettings(serial=device.address, root="none")) as phone:
        phone.script("settings put global http_proxy proxy.example:3128")
        with SystemProxy(phone).set(AGENT):
            assert told(phone) == AGENT
        assert told(phone) == "proxy.example:3128"
        phone.script(f"settings put global http_proxy {AGENT}")
    with AdbPhone("again", server, AdbSettings(serial=device.address, root="none")) as phone:
        assert told(phone) == "proxy.example:3128", "when the phone was given back"
        phone.script("settings put global http_proxy :0")


def test_a_phone_that_does_not_take_it(phone: AdbPhone, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TAKEN_TIMEOUT_S", 0.3)
    with (
        pytest.raises(DeviceError, match=r"one \(.*Android has not taken the proxy 127\.0\.0\.1:0 in its settings"),
        SystemProxy(phone).set("127.0.0.1:0"),
    ):
        pytest.fail("it was taken")
    assert told(phone) == ":0"


def test_a_later_process_takes_it_away(server: AdbServer, device: Device, tmp_path: Path) -> None:
    journal = UndoJournal(tmp_path)
    settings = AdbSettings(serial=device.address, root="none")
    with AdbPhone("one", server, settings, journal=journal) as phone, SystemProxy(phone).set(AGENT):
        assert told(phone) == AGENT
        noted = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
        (commands,) = (
            record["commands"] for record in noted if "proxy in Android's settings" in record.get("name", "")
        )
        for command in commands:
            subprocess.run(command, check=True, timeout=60)
        assert told(phone) == ":0"
    journal.close()
