"""``mplab scenarios record`` on a phone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mplab.base.errors import LabNotReadyError
from mplab.cli.main import app
from mplab.device import Device, DeviceSettings
from mplab.drivers.ui.uiautomator2 import phone_at
from mplab.userfiles.experiments.app import FILE, load_android_app

from .conftest import Adb


@pytest.fixture(scope="module")
def device(adb: Adb) -> Iterator[Device]:
    with Device(DeviceSettings(phone="android-13")) as device:
        adb.connect(device)
        yield device


def test_elements_of_a_phone_are_named(adb: Adb, device: Device, tmp_path: Path) -> None:
    adb("shell", "am", "start", "-n", "com.dropbox.android/.activity.DropboxBrowser", serial=device.address)
    target = tmp_path / FILE
    arguments = ["scenarios", "record", "dropbox", "--serial", device.address, "--adb-port", str(adb.port)]
    result = CliRunner().invoke(app, [*arguments, "--into", str(target)], input="1 title\nd\n")
    assert result.exit_code == 0, result.output
    recorded = load_android_app(tmp_path, "dropbox")
    assert recorded.package == "com.dropbox.android"
    assert re.fullmatch(r"([\d.]+) … \1", recorded.versions)
    assert recorded.elements["title"].value == "com.dropbox.android:id/toolbar_title"
    assert recorded.seen.startswith("Pixel 7, Android 13, 20")


def test_no_such_phone(adb: Adb, device: Device) -> None:
    with pytest.raises(LabNotReadyError, match=r"no phone nobody; there is: .*"):
        phone_at(adb.port, "nobody")
