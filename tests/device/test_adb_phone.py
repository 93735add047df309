"""`AdbPhone` on an emulated device: commands, files, programs, interfaces; all its changes are undone."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.base.programs import CURL, IP, LINKEM, MPTRACE, NODE
from mplab.base.undo import UndoJournal
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.interfaces import choose, parse_addresses
from mplab.drivers.phone.adb.programs import abi_of, host_file
from mplab.drivers.phone.adb.root import Root

from .conftest import wait_until


@pytest.fixture(scope="module")
def phone(server: AdbServer, device: Device) -> Iterator[AdbPhone]:
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        yield phone


def test_it_says_what_it_is(phone: AdbPhone, device: Device) -> None:
    identity = phone.identity()
    assert (identity.name, identity.model) == ("one", "Google Pixel 7")
    assert identity.os.startswith("Android 13 (")
    assert "TQ3A.230605.012" in identity.os
    assert identity.kernel == "5.10.157-android13-4-g3f2c1a9"
    assert phone.label == f"one ({device.address})"
    assert phone.root is Root.SU_C


def test_commands_have_streams_codes_and_quotes(phone: AdbPhone) -> None:
    text = "a 'b' \"c\" $HOME `id` \\ *"
    assert phone.shell(["printf", "%s", text]).stdout == text
    assert phone.shell(["cat"], stdin="x" * 300_000).stdout == "x" * 300_000
    result = phone.shell(["sh", "-c", "echo out; echo err >&2; exit 7"], check=False)
    assert (result.exit_code, result.stdout, result.stderr) == (7, "out\n", "err\n")
    assert phone.shell(["id", "-u"]).stdout == "0\n"


def test_what_fails_is_told_with_the_serial(phone: AdbPhone, device: Device) -> None:
    with pytest.raises(DeviceError, match=rf"one \({device.address}\): a command failed .*exit code 1\).*nothing-here"):
        phone.shell(["ls", "/nothing-here"])
    with pytest.raises(DeviceError, match=r"no answer within 0\.3 s"):
        phone.shell(["sleep", "30"], timeout_s=0.3)


def test_files_go_and_come(phone: AdbPhone, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "deep" / "target"
    source.write_bytes(os.urandom(1_000_000))
    for path in ("/data/local/tmp/file", "/data/misc/for-root-alone"):
        phone.push(source, path)
        phone.pull(path, target)
        assert target.read_bytes() == source.read_bytes()
        phone.shell(["rm", path])
    with pytest.raises(DeviceError, match="/data/none could not be copied"):
        phone.pull("/data/none", target)


def test_what_is_kept_is_for_root_alone(phone: AdbPhone) -> None:
    path = phone.keep("secret", "pass'word\n")
    assert phone.shell(["cat", path]).stdout == "pass'word\n"
    assert phone.shell(["stat", "-c", "%a %u", path]).stdout == "600 0\n"
    assert phone.link.run(f"cat {path}").exit_code != 0


def test_our_programs_are_brought_once(phone: AdbPhone) -> None:
    path = phone.program(LINKEM)
    assert "linkem" in phone.shell([path, "--version"]).stdout
    inode = phone.shell(["stat", "-c", "%i", path]).stdout
    phone.programs.forget()
    assert phone.program(LINKEM) == path
    assert phone.shell(["stat", "-c", "%i", path]).stdout == inode
    phone.shell(["sh", "-c", f"echo broken >> {path}"])
    phone.programs.forget()
    phone.program(LINKEM)
    assert phone.shell(["stat", "-c", "%i", path]).stdout != inode
    assert phone.shell([path, "--version"]).exit_code == 0


def test_the_phones_own_programs_are_found(phone: AdbPhone) -> None:
    assert phone.program(CURL).endswith("/curl")
    assert phone.program(IP) == "/system/bin/ip"
    with pytest.raises(LabNotReadyError, match=r"one \(.*\): has no node"):
        phone.program(NODE)


def test_a_program_of_another_machine_is_told() -> None:
    assert abi_of(MPTRACE.path()) in {"x86_64", "arm64-v8a"}
    with pytest.raises(
        LabNotReadyError, match=r"P1: mptrace for x86 is needed, .*: run 'make android ANDROID_ABI=x86'"
    ):
        host_file(MPTRACE, "x86", "P1")


def test_a_program_runs_beside(phone: AdbPhone, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "program.log"
    process = phone.spawn(
        ["sh", "-c", "id -u; echo wrong >&2; trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done"], log=log
    )
    wait_until(lambda: log.exists() and "wrong" in log.read_text(), "its output comes while it runs")
    assert process.poll() is None
    assert phone.shell(["cat", f"/proc/{process.pid}/cmdline"]).stdout.startswith("sh\0-c\0id -u")
    assert process.stop() == 3
    assert log.read_text().splitlines() == ["0", "wrong", "bye"]
    assert phone.shell(["test", "-e", f"/proc/{process.pid}"], check=False).exit_code == 1


def test_a_program_that_does_not_listen_is_killed(phone: AdbPhone, tmp_path: Path) -> None:
    process = phone.spawn(["sh", "-c", "trap '' TERM; while :; do sleep 0.05; done"], log=tmp_path / "log")
    assert process.stop(0.3) == 137
    ended = phone.spawn(["sh", "-c", "exit 5"], log=tmp_path / "log")
    assert ended.wait(10) == 5
    assert ended.stop() == 5
    with pytest.raises(DeviceError, match="no-such-program"):
        phone.shell(["no-such-program"])


def test_what_a_program_writes_is_brought(phone: AdbPhone, tmp_path: Path) -> None:
    target = tmp_path / "logs" / "agent.jsonl"
    phone.bring(target)
    first = phone.outbox(target)
    phone.bring(target)
    assert not target.exists()
    phone.shell(["sh", "-c", f"echo one > {first}"])
    phone.bring(target)
    assert target.read_text() == "one\n"
    second = phone.outbox(target)
    assert second != first, "nothing of a former attempt"
    assert phone.shell(["test", "-e", first], check=False).exit_code == 1
    target.unlink()
    phone.bring(target)
    assert not target.exists()


def test_capture_on_the_phone(phone: AdbPhone, adbd: str, tmp_path: Path) -> None:
    target, log = tmp_path / "lo.pcapng", tmp_path / "log"
    process = phone.spawn(
        [phone.program(MPTRACE), "capture", "--interface", "lo", "--write", phone.outbox(target)], log=log
    )
    wait_until(lambda: "ready" in log.read_text(), "it captures")
    phone.shell(["ping", "-c", "2", "-i", "0.2", "127.0.0.1"])
    assert process.stop() == 0
    phone.bring(target)
    packets = json.loads(log.read_text().splitlines()[-1])["packets"]
    assert packets == 4 or (adbd == "debian" and packets > 4), "connections to Debian's adbd use lo, too"
    assert target.read_bytes()[:4] == bytes.fromhex("0a0d0d0a")


def test_network_commands_and_counters(phone: AdbPhone) -> None:
    assert dict(phone.interfaces) == {"wlan0": "192.168.49.2", "rmnet0": "10.176.0.2"}
    assert dict(phone.devices) == {"wlan0": "wlan0", "rmnet0": "rmnet0"}
    phone.ip("addr add 10.9.9.9/32 dev lo", "rule add from 10.9.9.9 table 99")
    try:
        assert "lookup 99" in phone.shell(["ip", "rule"]).stdout
    finally:
        phone.ip("rule del from 10.9.9.9 table 99", "addr del 10.9.9.9/32 dev lo")
    with pytest.raises(DeviceError, match="a command failed"):
        phone.ip("addr add nonsense dev lo")
    phone.sysctl({"net.ipv4.ip_forward": 1})
    assert phone.shell(["cat", "/proc/sys/net/ipv4/ip_forward"]).stdout == "1\n"
    phone.sysctl({"net.ipv4.ip_forward": 0})
    counters = phone.counters()
    assert {"TcpExt.TCPTimeouts", "wlan0.rx_bytes", "rmnet0.tx_packets"} <= counters.keys()


def test_nothing_is_left_when_it_is_given_back(server: AdbServer, device: Device, phone: AdbPhone) -> None:
    with AdbPhone("two", server, AdbSettings(serial=device.address)) as again:
        path = again.keep("secret", "x")
        again.register("two: a setting", "settings delete global mplab_test")
        again.script("settings put global mplab_test 1")
    assert phone.shell(["test", "-e", path], check=False).exit_code == 1
    assert phone.shell(["settings", "get", "global", "mplab_test"]).stdout == "null\n"


def test_as_one_that_is_not_rooted(server: AdbServer, device: Device, tmp_path: Path) -> None:
    with AdbPhone("plain", server, AdbSettings(serial=device.address, root="none")) as plain:
        assert not plain.rooted
        assert plain.shell(["id", "-u"]).stdout == "2000\n"
        assert plain.shell(["stat", "-c", "%a", plain.keep("config", "text")]).stdout == "600\n"
        assert plain.spawn(["sh", "-c", "id -u"], log=tmp_path / "log").wait(10) == 0
        assert (tmp_path / "log").read_text() == "2000\n"
        with pytest.raises(DeviceError, match="Permission denied"):
            plain.sysctl({"net.ipv4.ip_forward": 1})


def test_interfaces_are_named_or_guessed(server: AdbServer, device: Device) -> None:
    settings = AdbSettings(serial=device.address, interfaces={"lte": "rmnet_data2"})
    message = r"no interface 'rmnet_data2', which is its lte; there are: lo, rmnet0, wlan0"
    with pytest.raises(LabNotReadyError, match=message), AdbPhone("one", server, settings):
        pass


def test_of_several_cellular_interfaces_the_one_with_an_address_is_taken() -> None:
    text = """1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
14: rmnet_data0@rmnet_ipa0: <UP,LOWER_UP> mtu 1500 qdisc htb state UNKNOWN mode DEFAULT group default qlen 1000
16: rmnet_data2@rmnet_ipa0: <UP,LOWER_UP> mtu 1500 qdisc htb state UNKNOWN mode DEFAULT group default qlen 1000
30: wlan0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DORMANT group default qlen 3000
31: wlan1: <BROADCAST,MULTICAST> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 3000
16: rmnet_data2    inet 10.34.5.6/30 scope global rmnet_data2
30: wlan0    inet 192.168.1.23/24 brd 192.168.1.255 scope global wlan0
"""
    interfaces = parse_addresses(text)
    assert choose(interfaces, {}) == {"wlan0": "wlan0", "rmnet0": "rmnet_data2"}
    assert choose(interfaces, {"lte": "rmnet_data0"})["rmnet0"] == "rmnet_data0"
    assert not interfaces["wlan1"].up


def test_several_phones_at_one_server(server: AdbServer, phone: AdbPhone) -> None:
    with (
        Device(DeviceSettings(phone="android-10", apps=False)) as other,
        AdbPhone("other", server, AdbSettings(serial=other.address)) as second,
    ):
        assert second.identity().model == "Google Pixel 3a"
        assert phone.identity().model == "Google Pixel 7"
        with pytest.raises(LabNotReadyError, match="third: several phones and no serial: choose one"):
            AdbPhone("third", server).__enter__()


_KILLED = """
import sys, time
from pathlib import Path
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.routing import Routing
from mplab.base.undo import UndoJournal

home, journal, serial = sys.argv[1:]
with AdbServer(Path(home)) as server, UndoJournal(Path(journal)) as notes:
    with AdbPhone("one", server, AdbSettings(serial=serial), journal=notes) as phone:
        Routing(phone).stop_ipv6()
        phone.register("one: a setting", "settings delete global mplab_left")
        phone.script("settings put global mplab_left 1")
        process = phone.spawn(["sleep", "86399"], log=Path(home) / "sleep.log")
        print(process.pid, server.port, flush=True)
        time.sleep(600)
"""


def test_who_is_killed_leaves_nothing_behind(phone: AdbPhone, device: Device, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _KILLED, str(tmp_path / "home"), str(tmp_path / "journal"), device.address]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, port = map(int, process.stdout.readline().split())
        assert phone.shell(["test", "-e", f"/proc/{pid}"], check=False).exit_code == 0
        process.send_signal(signal.SIGKILL)
    wait_until(lambda: phone.shell(["test", "-e", f"/proc/{pid}"], check=False).exit_code == 1, "its program has ended")
    wait_until(lambda: not _runs_server(port), "its adb server has ended")
    assert phone.shell(["settings", "get", "global", "mplab_left"]).stdout == "1\n"
    assert "REJECT" in phone.script("ip6tables -S").stdout
    recovered = UndoJournal.recover(tmp_path / "journal")
    assert "mplab" not in phone.script("ip6tables -S").stdout
    assert next((item.name, item.failure) for item in recovered) == ("one: a setting", "")
    assert not [item for item in recovered if item.failure]
    assert phone.shell(["settings", "get", "global", "mplab_left"]).stdout == "null\n"
    assert phone.shell(["ls", "/data/local/tmp/mplab"]).stdout.count("run-") == 1


def _runs_server(port: int) -> bool:
    return any(f"-P {port} " in " ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"]))


def test_no_other_server_is_started(server: AdbServer) -> None:
    with AdbServer(server.home) as other:
        client = other.client
    with pytest.raises(OSError, match="refused"):
        client.server_version()
    assert not _runs_server(client.port)
