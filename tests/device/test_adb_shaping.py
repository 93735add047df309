"""A phone that shapes itself by a run's root shell; a later process can release it."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mplab.base.errors import LabNotReadyError
from mplab.base.undo import UndoJournal, UndoStack
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.shaper.adb.driver import AdbShapingPhone, AdbShell, restore_later
from mplab.drivers.shaper.owner import Owner
from mplab.drivers.shaper.tc.guard import KERNEL_DEVICE
from mplab.drivers.shaper.tc.hold import Hold
from mplab.drivers.shaper.tc.machine import RootedPhone
from mplab.drivers.shaper.tc.shell import MachineError


@pytest.fixture(scope="module", autouse=True)
def _own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbPhone]:
    with (
        AdbServer(tmp_path_factory.mktemp("adb-home")) as server,
        Device(DeviceSettings(phone="android-13", apps=False)) as device,
        AdbPhone("one", server, AdbSettings(serial=device.address)) as phone,
    ):
        yield phone


def is_held(phone: AdbPhone) -> bool:
    return phone.shell(["test", "-e", f"{RootedPhone.state_directory}/owner"], check=False).exit_code == 0


def has_netem(phone: AdbPhone) -> bool:
    script = "ip link add try type ifb && tc qdisc add dev try root netem; code=$?; ip link del try; exit $code"
    return phone.script(script, check=False).exit_code == 0


def test_scripts_run_as_root_with_arguments_and_codes(phone: AdbPhone) -> None:
    shell = AdbShell(phone)
    shell.connect()
    assert shell.alive
    assert shell.script('id -u; printf "%s|" "$@"', "a b", "it's").stdout == "0\na b|it's|"
    assert shell.script("return 7", check=False).exit_code == 7
    with pytest.raises(MachineError, match="phone one: a command failed"):
        shell.script("return 7")


def test_it_is_held_and_given_back_by_a_later_process(phone: AdbPhone) -> None:
    hold = Hold("phone one", AdbShell(phone), RootedPhone.state_directory, Owner(UndoStack()).token(), dead_man_s=600)
    if phone.script("ip link add name try type ifb && ip link del try", check=False).exit_code != 0:
        pytest.skip("no ifb: it needs the module ifb of the kernel")
    hold.take()
    hold.check_alive()
    assert is_held(phone)
    hold.stop_beating()
    somebody = subprocess.run(restore_later(phone, "somebody@else:1:2"), check=False, capture_output=True, text=True)
    assert (somebody.returncode, is_held(phone)) == (0, True), somebody.stderr
    later = subprocess.run(restore_later(phone, hold.owner), check=False, capture_output=True, text=True)
    assert (later.returncode, is_held(phone)) == (0, False), later.stderr
    assert KERNEL_DEVICE not in phone.shell(["ls", "/sys/class/net"]).stdout
    with pytest.raises(MachineError, match="dead-man's switch"):
        hold.check_alive()


def test_a_kernel_that_cannot_shape_is_refused_and_left_as_it_was(phone: AdbPhone, tmp_path: Path) -> None:
    with UndoJournal(tmp_path / "undo") as journal, UndoStack(journal) as undo:
        shaping_phone = AdbShapingPhone(phone, owner=Owner(undo), interfaces=["wlan0"])
        if has_netem(phone):
            with shaping_phone:
                assert is_held(phone)
        else:
            with pytest.raises(LabNotReadyError, match=r"phone one: .*netem"), shaping_phone:
                pytest.fail("it was taken")
    assert not is_held(phone)
