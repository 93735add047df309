"""The tools of the device's shell: toybox and busybox, or busybox only."""

from collections.abc import Iterator

import pytest

from mplab.device import Device, DeviceSettings
from mplab.device.system.toolbox import TOYBOX
from tests.device.conftest import Adb

needs_toybox = pytest.mark.skipif(TOYBOX.find() is None, reason="toybox is not installed")


@pytest.fixture(scope="module", params=["", "none"], ids=["toybox", "busybox"])
def tools(request: pytest.FixtureRequest, adb: Adb) -> Iterator[tuple[str, Device]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLAB_TOYBOX", request.param)
        with Device(DeviceSettings(apps=False)) as device:
            adb.connect(device)
            yield request.param, device


def test_the_commands_that_toybox_names_are_there(adb: Adb, tools: tuple[str, Device]) -> None:
    _kind, device = tools
    missing = adb.text("shell", "for c in $(toybox); do which $c >/dev/null || echo $c; done", serial=device.address)
    assert missing == ""
    names = adb.text("shell", "toybox", serial=device.address).split()
    assert {"cat", "dd", "grep", "id", "ls", "md5sum", "ps", "tr", "uname"} <= set(names)


def test_toybox_runs_a_command(adb: Adb, tools: tuple[str, Device]) -> None:
    _kind, device = tools
    line = "echo -n mplab | toybox md5sum; toybox id -un; toybox no-such-command; echo $?"
    lines = adb.text("shell", f"({line}) 2>&1", serial=device.address).splitlines()
    assert lines[0].split() == ["4c21c65c83f8b2a43cfab6af5ef6b7db", "-"]
    assert lines[1:] == ["shell", 'toybox: Unknown command no-such-command (see "toybox --help")', "127"]


def test_ps_lists_processes_by_column(adb: Adb, tools: tuple[str, Device]) -> None:
    _kind, device = tools
    lines = adb.text("shell", "ps -A -o PID,USER,ARGS", serial=device.address).splitlines()
    assert lines[0].split()[:2] == ["PID", "USER"]
    assert ["1", "root"] in [line.split()[:2] for line in lines]
    assert adb.text("shell", "ps", serial=device.address).split()[:3] == ["USER", "PID", "PPID"]


@needs_toybox
def test_toybox_is_the_shells_tools_if_it_is_installed(adb: Adb, tools: tuple[str, Device]) -> None:
    kind, device = tools
    target = adb.text("shell", "readlink /system/bin/ls", serial=device.address).strip()
    assert target == ("/system/lib/busybox" if kind else "/system/lib/toybox")
