"""``mplab phone`` on emulated devices: rooted with upstream MPTCP, rooted with the out-of-tree kernel, not rooted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from mplab.base.errors import InputError, LabNotReadyError, MplabError
from mplab.cli.main import app
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb.quarantine import Quarantine
from mplab.drivers.transport import DRIVERS


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("state")
        patch.setenv("XDG_STATE_HOME", str(folder))
        patch.setenv("HOME", str(folder))
        yield folder


def mplab(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["phone", *arguments])


def refused(kind: type[MplabError], *arguments: str) -> str:
    """Return the message of the error with which a command ends."""
    result = mplab(*arguments)
    assert type(result.exception) is kind
    return str(result.exception)


def probed(name: str) -> dict[str, Any]:
    with Device(DeviceSettings(phone=name, apps=False)) as device:
        result = mplab("probe", device.address, "--json")
    assert result.exception is None, result.exception
    report: dict[str, Any] = json.loads(result.stdout)
    return report


@pytest.mark.usefixtures("state")
def test_rooted_with_upstream_mptcp() -> None:
    report = probed("android-13")
    assert report["identity"]["model"] == "Google Pixel 7"
    assert report["root"] == "su -c"
    assert report["kernel"]["kind"] == "upstream"
    assert report["captures"] == ["proxy", "phone"]
    assert {name: transport["how"] for name, transport in report["transports"].items()} == dict.fromkeys(
        DRIVERS, "redirect"
    )
    assert report["uncontrolled"] == []
    assert report["programs"]["mpflex"] == "/data/local/tmp/mplab/bin/mpflex"


@pytest.mark.usefixtures("state")
def test_rooted_with_the_out_of_tree_kernel() -> None:
    report = probed("mptcp-095")
    kernel = report["kernel"]
    assert (kernel["kind"], kernel["version"], kernel["path_manager"]) == ("out-of-tree", "0.95", "fullmesh")
    assert kernel["multipath"]
    assert report["transports"]["mptcp"]["note"] == "out-of-tree 0.95, path manager fullmesh, scheduler default"


@pytest.mark.usefixtures("state")
def test_not_rooted() -> None:
    report = probed("android-16")
    assert report["root"] == "none"
    assert report["captures"] == ["proxy"]
    assert report["transports"]["mpflex"]["how"] == "socks"
    assert not report["transports"]["mptcp"]["possible"]
    assert any("QUIC" in item for item in report["uncontrolled"])


@pytest.mark.usefixtures("state")
def test_a_lab_file_names_phone_and_thresholds(tmp_path: Path) -> None:
    with Device(DeviceSettings(phone="mptcp-095", apps=False)) as device:
        lab = tmp_path / "lab.yaml"
        lab.write_text(
            "mplab: 1\nname: bench\nphones:\n"
            f"  nexus: {{driver: adb, serial: '{device.address}', root: none, ready: {{battery: 100}}}}\n"
        )
        shown = mplab("probe", "nexus", "--lab", str(lab)).stdout
        assert f"not ready: battery at {device.state()['battery']['level']} %, 100 % are needed" in shown
        assert "kernel MPTCP: out-of-tree 0.95, switched on, path manager fullmesh" in shown
        assert "not controlled: QUIC" in shown
        listed = mplab("list", "--connect", device.address, "--json")
        assert [phone["serial"] for phone in json.loads(listed.stdout)] == [device.address]
    message = refused(InputError, "probe", "other", "--lab", str(lab))
    assert "no phone 'other' with 'driver: adb'; there are: nexus (" in message


def test_release(state: Path) -> None:
    Quarantine(state / "mplab" / "adb" / "quarantine").put("A1", "it is odd")
    listed = mplab("list").stdout
    assert "A1" in listed
    assert "it is odd" in listed
    assert "run 'mplab phone release A1'" in refused(LabNotReadyError, "probe", "A1")
    assert mplab("release", "A1").stdout.startswith("A1: released; it was in quarantine since ")
    assert refused(InputError, "release", "A1") == "A1 is not in quarantine; there are: none"


def test_a_serial_that_is_none() -> None:
    assert refused(InputError, "probe", "a b").startswith("serial 'a b': as 'adb devices' shows it")
