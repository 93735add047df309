"""``adb shell`` and ``adb exec-out``: streams, exit codes, terminals, permissions."""

import hashlib
import subprocess

import adbutils
import pytest

from mplab.device import Device
from tests.device.conftest import Adb, Shell, wait_until


@pytest.mark.parametrize("code", [0, 1, 7, 127, 255])
def test_exit_codes_come_back(shell: Shell, code: int) -> None:
    assert shell(f"exit {code}").returncode == code


def test_a_killed_program_is_told_as_a_shell_tells_it(shell: Shell) -> None:
    assert shell("kill -9 $$").returncode == 137


def test_the_three_streams_are_apart(shell: Shell) -> None:
    result = shell("cat; echo wrong >&2", stdin=b"hello")
    assert (result.stdout, result.stderr) == (b"hello", b"wrong\n")


def test_much_standard_input_arrives_whole(shell: Shell) -> None:
    data = bytes(range(256)) * 20_000
    assert shell("md5sum", stdin=data).stdout.split()[0].decode() == hashlib.md5(data).hexdigest()  # noqa: S324


def test_exec_out_is_binary(adb: Adb, phone: Device) -> None:
    result = adb("exec-out", "printf '\\r\\n\\000\\377'; head -c 3000000 /dev/zero", serial=phone.address)
    assert result.stdout == b"\r\n\0\xff" + bytes(3_000_000)


def test_exec_in_ends_at_the_end_of_what_is_sent(adb: Adb, phone: Device, shell: Shell) -> None:
    data = b"x" * 100_000
    adb("exec-in", "cat > /data/local/tmp/in", stdin=data, serial=phone.address)
    wait_until(lambda: shell("stat -c %s /data/local/tmp/in").stdout == b"100000\n", "all of it is there")


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("echo a | tr a b | rev", "b\n"),
        ("false || echo c && echo d", "c\nd\n"),
        ("for i in 1 2 3; do echo $i; done", "1\n2\n3\n"),
        ('x=$(echo "a  b"); [[ $x = a* ]] && echo "$x"', "a  b\n"),
        ("f() { echo $1; }; f 'it''s'", "its\n"),
        ("echo ${PATH##*:}", "/vendor/xbin\n"),
        ("cd /sdcard && pwd -P", "/storage/emulated/0\n"),
        ("i=0; while [ $i -lt 2 ]; do i=$((i+1)); done; echo $i", "2\n"),
    ],
)
def test_the_shell_is_one(shell: Shell, line: str, printed: str) -> None:
    assert shell(line).stdout.decode() == printed


def test_a_terminal_on_request(adb: Adb, phone: Device) -> None:
    result = adb("shell", "-t", "-t", "tty; test -t 0 && echo terminal", serial=phone.address)
    assert result.stdout == b"/dev/pts/0\r\nterminal\r\n" or b"terminal\r\n" in result.stdout


def test_an_interactive_shell(adb: Adb, phone: Device) -> None:
    result = adb("shell", stdin=b"echo one\nexit 3\n", serial=phone.address)
    assert (result.stdout, result.returncode) == (b"one\n", 3)


def test_who_is_cut_off_ends(adb: Adb, phone: Device, shell: Shell) -> None:
    process = subprocess.Popen(
        ["adb", "-P", str(adb.port), "-s", phone.address, "shell", "echo up; exec sleep 98765"],
        stdout=subprocess.PIPE,
        env=adb.environment,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.kill()
    process.communicate()
    wait_until(lambda: b"98765" not in shell("ps -A -o ARGS | grep -v grep").stdout, "the sleep has ended")


def test_what_is_detached_stays(shell: Shell) -> None:
    shell("setsid sleep 54321 >/dev/null 2>&1 < /dev/null &")
    assert b"54321" in shell("ps -A -o ARGS | grep -v grep").stdout
    shell("pkill sleep")
    wait_until(lambda: b"54321" not in shell("ps -A -o ARGS | grep -v grep").stdout, "it has been killed")


def test_shell_is_not_root(shell: Shell) -> None:
    assert shell("id -u").stdout == b"2000\n"
    assert b"Operation not permitted" in shell("ip link set wlan0 down").stderr
    assert shell("sysctl -w net.ipv4.ip_forward=1").returncode != 0
    assert b"Permission denied" in shell("ls /data/misc").stderr
    assert shell("touch /system/x").returncode == 1


@pytest.mark.parametrize(
    "line", ["su -c id", "su 0 id", "su root id", "su -c 'id'", "su 0 -c id", "su root sh -c id", "echo id | su"]
)
def test_dialects_of_su(shell: Shell, line: str) -> None:
    assert shell(line).stdout.startswith(b"uid=0(root) gid=0(root)")


def test_su_passes_streams_and_codes(shell: Shell) -> None:
    result = shell("su -c 'cat; exit 9'", stdin=b"\0\1\2")
    assert (result.stdout, result.returncode) == (b"\0\1\2", 9)


def test_many_shells_at_once(phone: Device, adb: Adb) -> None:
    argv = ["adb", "-P", str(adb.port), "-s", phone.address, "shell"]
    started = [
        subprocess.Popen(
            [*argv, f"sleep 0.1; echo {number}; exit {number}"], stdout=subprocess.PIPE, env=adb.environment
        )
        for number in range(12)
    ]
    results = [(process.communicate()[0], process.returncode) for process in started]
    assert results == [(f"{number}\n".encode(), number) for number in range(12)]


def test_adbutils_shell(client: adbutils.AdbClient, phone: Device) -> None:
    device = client.device(phone.address)
    assert device.shell("echo one; echo two >&2") == "one\ntwo"
    assert device.shell2("(exit 4)").returncode == 4
    second = device.shell2("echo out; echo err >&2; exit 5", v2=True)
    assert (second.stdout, second.stderr, second.returncode) == ("out\n", "err\n", 5)
    assert device.prop.model == "Pixel 7"
    assert device.window_size() == (1080, 2400)
    assert device.wlan_ip() == "192.168.49.2"
    assert device.is_screen_on()
    assert device.rotation() == 0
