"""Output of Android's commands on the emulated phone: golden texts, switches that work, a log that grows."""

import io
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from mplab.device import Device, DeviceSettings
from tests.device.conftest import Adb, Shell, wait_until

GOLDEN = Path(__file__).parent / "golden"

ASKED = {
    "battery": "dumpsys battery",
    "wifi": "dumpsys wifi",
    "telephony": "dumpsys telephony.registry",
    "connectivity": "dumpsys connectivity",
    "power": "dumpsys power",
    "thermal": "dumpsys thermalservice",
    "window": "dumpsys window",
    "activities": "dumpsys activity activities",
    "packages": "pm list packages -f",
    "version-codes": "pm list packages --show-versioncode",
    "settings": "settings list global; settings list system; settings list secure",
    "properties": "getprop | grep -v -e cpu.abi -e ro.build.date -e ro.boot.serialno",
    "sizes": "wm size; wm density",
    "identity": "id; uname -srv; getenforce",
    "errors": "settings get nowhere x; svc wifi perhaps; pm path no.such.app; cmd nothing; dumpsys nothing; am fly; "
    "am start -n no.such.app/.Main; setprop ro.serialno x; input fly; wm fly; cmd wifi status",
}
PHONES = ("android-10", "android-13", "android-16")


@pytest.fixture(scope="module", params=PHONES)
def kind(request: pytest.FixtureRequest, adb: Adb) -> Iterator[tuple[str, Device]]:
    with Device(DeviceSettings(phone=request.param, apps=False)) as device:
        adb.connect(device)
        wait_until(lambda: device.state()["radios"]["data_up"], "both radios are up")
        yield request.param, device


@pytest.mark.parametrize("name", ASKED)
def test_answers_are_as_the_formats_say(adb: Adb, kind: tuple[str, Device], name: str) -> None:
    phone, device = kind
    result = adb("shell", f"({ASKED[name]}) 2>&1", serial=device.address)
    golden = GOLDEN / phone / f"{name}.txt"
    if not golden.exists():
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_bytes(result.stdout)
        pytest.fail(f"{golden} was not there: it has been written; read it")
    assert result.stdout.decode() == golden.read_text()


def test_settings_are_kept(shell: Shell) -> None:
    shell("settings put global mplab 'a b'")
    assert shell("settings get global mplab").stdout == b"a b\n"
    assert b"mplab=a b\n" in shell("settings list global").stdout
    assert shell("settings delete global mplab").stdout == b"Deleted 1 rows\n"
    assert shell("settings get global mplab").stdout == b"null\n"


def test_wifi_goes_and_comes_back(shell: Shell, phone: Device) -> None:
    before = shell("ip -4 -o addr show wlan0; ip -4 route show table all dev wlan0 | sort").stdout
    shell("svc wifi disable")
    wait_until(lambda: not phone.state()["radios"]["wifi_up"], "WiFi is down")
    assert b"state DOWN" in shell("ip link show wlan0").stdout
    assert b"Wi-Fi is disabled" in shell("dumpsys wifi").stdout
    assert b"wlan0" not in shell("ip route").stdout
    shell("svc wifi enable")
    wait_until(lambda: phone.state()["radios"]["wifi_up"], "WiFi is up")
    assert shell("ip -4 -o addr show wlan0; ip -4 route show table all dev wlan0 | sort").stdout == before
    assert shell("ping -c 1 -w 5 192.168.49.1").returncode == 0


def test_mobile_data_beside_wifi_only_when_it_is_wanted(shell: Shell, phone: Device) -> None:
    shell("settings put global mobile_data_always_on 0")
    wait_until(lambda: not phone.state()["radios"]["data_up"], "mobile data is down beside WiFi")
    shell("svc wifi disable")
    wait_until(lambda: phone.state()["radios"]["data_up"], "mobile data is up without WiFi")
    shell("settings put global mobile_data_always_on 1; svc wifi enable")
    wait_until(lambda: all(phone.state()["radios"][name] for name in ("wifi_up", "data_up")), "both are up")
    shell("svc data disable")
    wait_until(lambda: b"state DOWN" in shell("ip link show rmnet0").stdout, "mobile data is down")
    assert b"mDataConnectionState=0" in shell("dumpsys telephony.registry").stdout
    shell("svc data enable")
    wait_until(lambda: phone.state()["radios"]["data_up"], "mobile data is up")


def test_apps_are_processes(shell: Shell) -> None:
    name = "com.dropbox.android"
    assert b"Starting: Intent" in shell(f"am start -W -n {name}/.activity.DbxMainActivity").stdout
    pid = shell(f"pidof {name}").stdout.strip().decode()
    assert shell(f"ps -A -o PID,USER,NAME | grep {name}").stdout.split()[:2] == [pid.encode(), b"u0_a105"]
    assert f"u0 {name}/{name}.activity.DbxMainActivity".encode() in shell("dumpsys window | grep mCurrentFocus").stdout
    assert shell(f"su -c 'kill -9 {pid}'").returncode == 0
    wait_until(lambda: b"launcher" in shell("dumpsys window | grep mCurrentFocus").stdout, "the home screen is shown")
    shell(f"monkey -p {name} -c android.intent.category.LAUNCHER 1")
    assert shell(f"pidof {name}").stdout.strip() not in {b"", pid.encode()}
    shell(f"am force-stop {name}")
    assert shell(f"pidof {name}").stdout == b""


def test_packages_are_cleared_disabled_granted(shell: Shell) -> None:
    name = "com.dropbox.android"
    assert shell(f"pm clear {name}").stdout == b"Success\n"
    assert shell(f"pm disable-user --user 0 {name}").stdout == f"Package {name} new state: disabled-user\n".encode()
    assert name.encode() in shell("pm list packages -d").stdout
    assert shell(f"am start -n {name}/.activity.DbxMainActivity").returncode == 1
    assert shell(f"pm enable {name}").stdout == f"Package {name} new state: enabled\n".encode()
    shell(f"pm grant {name} android.permission.CAMERA")
    assert b"android.permission.CAMERA: granted=true" in shell(f"dumpsys package {name}").stdout
    shell(f"pm revoke {name} android.permission.CAMERA")
    assert b"CAMERA" not in shell(f"dumpsys package {name}").stdout


def test_the_log_grows_and_is_cut(adb: Adb, phone: Device, shell: Shell) -> None:
    shell("logcat -c; log -t before one")
    moment = shell("date '+%m-%d %H:%M:%S.%N' | cut -c1-18").stdout.decode().strip()
    shell("log -p w -t after two")
    assert b"one" in shell("logcat -d").stdout
    cut = shell(f"logcat -d -v threadtime -T '{moment}'").stdout
    assert (b" W after   : two" in cut, b"one" in cut) == (True, False)
    assert shell("logcat -d -s after:W -v epoch").stdout.splitlines()[1].split()[3:] == [b"W", b"after", b":", b"two"]
    follower = subprocess.Popen(
        ["adb", "-P", str(adb.port), "-s", phone.address, "logcat", "-T", "1"],
        stdout=subprocess.PIPE,
        env=adb.environment,
    )
    assert follower.stdout is not None
    assert b"beginning" in follower.stdout.readline()
    shell("log -t follower three")
    while b"three" not in follower.stdout.readline():
        pass
    follower.kill()
    follower.communicate()


def test_pictures(adb: Adb, phone: Device, shell: Shell) -> None:
    png = adb("exec-out", "screencap -p", serial=phone.address).stdout
    assert Image.open(io.BytesIO(png)).size == (1080, 2400)
    shell("screencap -p /sdcard/shot.png")
    assert shell("md5sum < /sdcard/shot.png").stdout.split()[0] == shell("screencap -p | md5sum").stdout.split()[0]


def test_a_film_until_it_is_stopped(adb: Adb, phone: Device, shell: Shell, tmp_path: Path) -> None:
    shell("screenrecord --time-limit 60 /sdcard/film.mp4 & sleep 1; kill -INT $!; wait")
    adb("pull", "/sdcard/film.mp4", str(tmp_path), serial=phone.address)
    film = (tmp_path / "film.mp4").read_bytes()
    assert film[4:8] == b"ftyp"
    boxes, at = [], 0
    while at + 8 <= len(film):
        (size,) = struct.unpack_from(">I", film, at)
        boxes.append(film[at + 4 : at + 8])
        at += size
    assert at == len(film), "it is whole"
    assert {b"moov", b"moof", b"mdat"} <= set(boxes)


def test_the_hierarchy_of_the_screen(shell: Shell) -> None:
    shell("input keyevent HOME")
    assert shell("uiautomator dump").stdout == b"UI hierchary dumped to: /sdcard/window_dump.xml\n"
    assert b'<hierarchy rotation="0">' in shell("cat /sdcard/window_dump.xml").stdout


def test_kernel_mptcp_of_both_worlds(adb: Adb, shell: Shell) -> None:
    assert shell("su -c 'ip mptcp endpoint add 10.176.0.2 dev rmnet0 subflow; ip mptcp endpoint flush'").returncode == 0
    assert shell("sysctl -n net.mptcp.enabled").stdout.strip() in {b"0", b"1"}
    with Device(DeviceSettings(phone="mptcp-095")) as old:
        adb.connect(old)

        def out(command: str) -> str:
            result = adb("shell", f"({command}) 2>&1", serial=old.address)
            return result.stdout.decode()

        assert out("sysctl net.mptcp.mptcp_path_manager") == "net.mptcp.mptcp_path_manager = fullmesh\n"
        assert "permission denied" in out("sysctl -w net.mptcp.mptcp_path_manager=ndiffports")
        out("su -c 'sysctl -w net.mptcp.mptcp_path_manager=ndiffports'")
        assert out("cat /proc/sys/net/mptcp/mptcp_path_manager") == "ndiffports\n"
        assert 'Object "mptcp" is unknown' in out("ip mptcp endpoint")
        out("su -c 'ip link set dev rmnet0 multipath backup'")
        assert old.state()["multipath"] == {"rmnet0": "backup"}
        assert "uname" not in out("uname -r | grep mptcp-0.95")
