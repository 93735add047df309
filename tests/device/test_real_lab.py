"""Data that a run reads of a real phone before it changes anything: its identity, or why it cannot be used."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.device import Device, DeviceSettings
from mplab.lab.phones.adb.lab import identify_phone, phone_lock
from mplab.userfiles.labs.labuse import LabUse, use_lab


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    with Device(DeviceSettings(phone=request.param, apps=False)) as device:
        yield device


def lab(tmp_path: Path, device: Device, more: str = "") -> LabUse:
    path = tmp_path / "lab.yaml"
    path.write_text(
        f"mplab: 1\nname: bench\nphones: {{one: {{driver: adb, serial: '{device.address}'{more}}}}}\n"
        "proxy: {listen: [203.0.113.5]}\n"
    )
    return use_lab(path)


@pytest.mark.parametrize("device", ["android-13"], indirect=True)
def test_a_rooted_phone_says_what_it_is_unless_a_run_has_it(tmp_path: Path, device: Device) -> None:
    use = lab(tmp_path, device)
    facts = identify_phone(use)
    assert (facts["name"], facts["model"], facts["root"]) == ("one", "Google Pixel 7", "su -c")
    assert facts["serial"] == device.address
    with phone_lock(use, run_id="other"), pytest.raises(LabNotReadyError, match=r"is in use by run other"):
        identify_phone(use)


@pytest.mark.parametrize("device", ["android-16"], indirect=True)
def test_a_phone_that_is_not_rooted_is_refused(tmp_path: Path, device: Device) -> None:
    label = re.escape(f"one ({device.address})")
    with pytest.raises(LabNotReadyError, match=rf"{label}: not rooted: only root can redirect its traffic"):
        identify_phone(lab(tmp_path, device))


@pytest.mark.parametrize("device", ["android-16", "android-13"], indirect=True)
def test_a_phone_that_is_used_without_root_says_what_is_not_controlled(tmp_path: Path, device: Device) -> None:
    facts = identify_phone(lab(tmp_path, device, ", root: none"))
    assert facts["root"] == "none"
    assert any("default route" in item for item in facts["uncontrolled"])
