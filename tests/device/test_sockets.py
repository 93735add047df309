"""``adb forward`` and ``adb reverse``: real TCP through an adb stream."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator

import adbutils

from mplab.device import Device
from tests.device.conftest import TIMEOUT_S, Adb, Shell, wait_until


@contextlib.contextmanager
def echo_server() -> Iterator[int]:
    """Run a server on this machine that echoes its input; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    conn, _address = server.accept()
                except OSError:
                    return
                with conn:
                    while data := conn.recv(65536):
                        conn.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(TIMEOUT_S)


def echo_on_device(port: int) -> str:
    """Return a command line that runs an echo server on the device: by toybox, or by busybox, which refuses ``-L``."""
    servers = f"nc -L -p {port} /system/bin/cat || nc -ll -p {port} -e /system/bin/cat"
    return f"setsid sh -c '{servers}' >/dev/null 2>&1 </dev/null &"


def exchange(port: int, data: bytes) -> bytes:
    """Send `data` and return the same number of bytes as received."""
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as sock:
        sender = threading.Thread(target=sock.sendall, args=(data,))
        sender.start()
        parts, missing = [], len(data)
        while missing and (part := sock.recv(65536)):
            parts.append(part)
            missing -= len(part)
        sender.join(TIMEOUT_S)
        return b"".join(parts)


def test_forward_reaches_a_port_of_the_device(adb: Adb, phone: Device, shell: Shell) -> None:
    shell(echo_on_device(7070))
    wait_until(lambda: b":7070" in shell("netstat -ltn").stdout, "a server runs on the device")
    port = int(adb.text("forward", "tcp:0", "tcp:7070", serial=phone.address))
    data = os.urandom(2_000_000)
    assert exchange(port, data) == data
    assert f"tcp:{port} tcp:7070" in adb.text("forward", "--list")
    adb("forward", "--remove", f"tcp:{port}", serial=phone.address)
    shell("killall nc")


def test_a_port_without_a_server_is_refused(adb: Adb, phone: Device) -> None:
    port = int(adb.text("forward", "tcp:0", "tcp:7999", serial=phone.address))
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as sock:
        assert sock.recv(1) == b""
    adb("forward", "--remove", f"tcp:{port}", serial=phone.address)


def test_the_device_has_a_network_of_its_own(adb: Adb, phone: Device) -> None:
    with echo_server() as mine:
        port = int(adb.text("forward", "tcp:0", f"tcp:{mine}", serial=phone.address))
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as sock:
            assert sock.recv(1) == b""
        adb("forward", "--remove", f"tcp:{port}", serial=phone.address)


def test_reverse_reaches_a_port_of_this_machine(adb: Adb, phone: Device, shell: Shell) -> None:
    with echo_server() as port:
        assert adb("reverse", "tcp:7171", f"tcp:{port}", serial=phone.address).returncode == 0
        assert f"tcp:7171 tcp:{port}" in adb.text("reverse", "--list", serial=phone.address)
        assert adb("reverse", "--no-rebind", "tcp:7171", "tcp:1", serial=phone.address).returncode != 0
        result = shell("(cat; sleep 1) | nc 127.0.0.1 7171 | head -c 5", stdin=b"hello")
        assert result.stdout == b"hello"
        assert adb("reverse", "--remove", "tcp:7171", serial=phone.address).returncode == 0
        assert shell("nc -w2 127.0.0.1 7171 </dev/null").returncode != 0
        assert adb("reverse", "--remove", "tcp:7171", serial=phone.address).returncode != 0


def test_reverse_finds_a_free_port(adb: Adb, phone: Device) -> None:
    with echo_server() as port:
        free = int(adb.text("reverse", "tcp:0", f"tcp:{port}", serial=phone.address))
        assert f"tcp:{free} tcp:{port}" in adb.text("reverse", "--list", serial=phone.address)
        adb("reverse", "--remove-all", serial=phone.address)
        assert adb.text("reverse", "--list", serial=phone.address).strip() == ""


def test_adbutils_connects_to_the_device(client: adbutils.AdbClient, phone: Device, shell: Shell) -> None:
    shell(echo_on_device(7272))
    wait_until(lambda: b":7272" in shell("netstat -ltn").stdout, "a server runs on the device")
    with client.device(phone.address).create_connection(adbutils.Network.TCP, 7272) as sock:
        sock.sendall(b"ping")
        assert sock.recv(4) == b"ping"
    shell("killall nc")
