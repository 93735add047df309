"""``adb push``, ``pull``, ``ls``: bytes, trees, times, modes, refusals."""

import hashlib
import os
from pathlib import Path

import adbutils
import pytest

from mplab.device import Device
from tests.device.apks import make_apk
from tests.device.conftest import Adb, Shell


def test_a_large_file_both_ways(adb: Adb, phone: Device, shell: Shell, tmp_path: Path) -> None:
    data = os.urandom(1 << 20) * 24 + b"odd"
    (tmp_path / "out").write_bytes(data)
    assert adb("push", str(tmp_path / "out"), "/sdcard/Download/large", serial=phone.address).returncode == 0
    assert shell("md5sum /sdcard/Download/large").stdout.split()[0].decode() == hashlib.md5(data).hexdigest()  # noqa: S324
    assert adb("pull", "/sdcard/Download/large", str(tmp_path / "in"), serial=phone.address).returncode == 0
    assert (tmp_path / "in").read_bytes() == data
    shell("rm /sdcard/Download/large")


def test_an_empty_file(adb: Adb, phone: Device, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    adb("push", str(tmp_path / "empty"), "/data/local/tmp/empty", serial=phone.address)
    adb("pull", "/data/local/tmp/empty", str(tmp_path / "back"), serial=phone.address)
    assert (tmp_path / "back").read_bytes() == b""


def test_a_tree_both_ways(adb: Adb, phone: Device, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("a", "b/c", "b/ü mit Leerzeichen", "d/e/f/g"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(name * 1000)
    (tree / "link").symlink_to("a")
    assert adb("push", str(tree), "/data/local/tmp/tree", serial=phone.address).returncode == 0
    listed = adb.text("ls", "/data/local/tmp/tree", serial=phone.address)
    assert {line.split(maxsplit=3)[3] for line in listed.splitlines()} == {".", "..", "a", "b", "d", "link"}
    assert adb("pull", "/data/local/tmp/tree", str(tmp_path / "back"), serial=phone.address).returncode == 0
    for name in ("a", "b/c", "b/ü mit Leerzeichen", "d/e/f/g"):
        assert (tmp_path / "back" / name).read_text() == name * 1000


def test_modes_and_times_are_kept(adb: Adb, phone: Device, shell: Shell, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/system/bin/sh\necho ran\n")
    program.chmod(0o755)
    os.utime(program, (1_600_000_000, 1_600_000_000))
    adb("push", str(program), "/data/local/tmp/program", serial=phone.address)
    assert (
        shell("/data/local/tmp/program; stat -c '%a %Y %U' /data/local/tmp/program").stdout
        == b"ran\n777 1600000000 shell\n"
    )
    adb("pull", "-a", "/data/local/tmp/program", str(tmp_path / "back"), serial=phone.address)
    assert int((tmp_path / "back").stat().st_mtime) == 1_600_000_000


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("/data/misc/x", "Permission denied"),
        ("/system/x", "Permission denied"),
        ("/proc/x/y", "No such file or directory"),
    ],
)
def test_what_may_not_be_written_is_refused(adb: Adb, phone: Device, tmp_path: Path, target: str, reason: str) -> None:
    (tmp_path / "x").write_bytes(b"x" * 300_000)
    result = adb("push", str(tmp_path / "x"), target, serial=phone.address)
    assert result.returncode == 1
    assert reason in (result.stdout + result.stderr).decode()


def test_what_is_not_there_cannot_be_pulled(adb: Adb, phone: Device, tmp_path: Path) -> None:
    result = adb("pull", "/sdcard/nothing", str(tmp_path), serial=phone.address)
    assert result.returncode == 1
    assert b"No such file or directory" in result.stdout + result.stderr


def test_links_lead_to_files_of_the_device(adb: Adb, phone: Device, shell: Shell, tmp_path: Path) -> None:
    shell("ln -s /etc/hosts /data/local/tmp/hosts")
    adb("pull", "/data/local/tmp/hosts", str(tmp_path / "hosts"), serial=phone.address)
    assert (tmp_path / "hosts").read_text() == "127.0.0.1 localhost\n::1 ip6-localhost\n"


def test_adbutils_sync(client: adbutils.AdbClient, phone: Device, tmp_path: Path) -> None:
    sync = client.device(phone.address).sync
    data = os.urandom(200_000)
    sync.push(data, "/sdcard/some", 0o644)
    assert sync.read_bytes("/sdcard/some") == data
    assert sync.stat("/sdcard/some").size == len(data)
    assert sync.exists("/sdcard/some")
    assert not sync.exists("/sdcard/other")
    assert "some" in {entry.path for entry in sync.list("/sdcard")}
    sync.pull("/sdcard/some", tmp_path / "some")
    assert (tmp_path / "some").read_bytes() == data


def test_install_and_uninstall(adb: Adb, phone: Device, tmp_path: Path) -> None:
    for version, code in (("1.2", 12), ("1.3", 13)):
        (tmp_path / "app.apk").write_bytes(make_apk("org.mplab.test", version, code))
        result = adb("install", "-r", str(tmp_path / "app.apk"), serial=phone.address)
        assert b"Success" in result.stdout, result
        shown = adb.text("shell", "dumpsys package org.mplab.test", serial=phone.address)
        assert f"versionCode={code} " in shown
        assert f"versionName={version}\n" in shown
    (tmp_path / "app.apk").write_bytes(make_apk("org.mplab.test", "1.0", 10))
    result = adb("install", "-r", str(tmp_path / "app.apk"), serial=phone.address)
    assert b"INSTALL_FAILED_VERSION_DOWNGRADE" in result.stdout + result.stderr
    (tmp_path / "app.apk").write_bytes(b"no apk")
    result = adb("install", str(tmp_path / "app.apk"), serial=phone.address)
    assert b"INSTALL_PARSE_FAILED" in result.stdout + result.stderr
    assert b"Success" in adb("uninstall", "org.mplab.test", serial=phone.address).stdout
    assert "org.mplab.test" not in adb.text("shell", "pm list packages", serial=phone.address)


def test_an_app_of_several_apks(adb: Adb, phone: Device, tmp_path: Path) -> None:
    base, split, other = (tmp_path / name for name in ("base.apk", "split.apk", "other.apk"))
    base.write_bytes(make_apk("org.mplab.parts", "1.4", 14))
    split.write_bytes(make_apk("org.mplab.parts", "1.4", 14))
    other.write_bytes(make_apk("org.mplab.other", "1.4", 14))
    result = adb("install-multiple", "-r", str(base), str(split), serial=phone.address)
    assert b"Success" in result.stdout, result
    assert "versionName=1.4" in adb.text("shell", "dumpsys package org.mplab.parts", serial=phone.address)
    result = adb("install-multiple", str(base), str(other), serial=phone.address)
    assert b"inconsistent packages: org.mplab.other, org.mplab.parts" in result.stdout + result.stderr
    assert b"Success" in adb("uninstall", "org.mplab.parts", serial=phone.address).stdout
