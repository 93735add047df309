"""Clients that connect without an adb server, ways to install, and the choice of adbd."""

import asyncio
import contextlib
import os
import shutil
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mplab.device import Device, DeviceSettings
from mplab.device.adbd.debian import MOUNTED, UNPACKED
from mplab.device.adbd.message import AUTH, CLSE, CNXN, OKAY, OPEN, VERSION, WRTE, AdbMessage, read_message
from tests.device.apks import make_apk
from tests.device.conftest import TIMEOUT_S, Adb

_REQUEST = struct.Struct("<4sI")
_PUBLIC_KEY = 3
_DEBIANS_OWN = "sendrecv_v2"
"""A feature that mplab's own adbd does not have."""


class Client:
    """A host that speaks adb's protocol itself, as adb-shell does: it waits for the answer to each CLSE."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: str) -> None:
        self._reader, self._writer, self._key = reader, writer, key
        self._local = 0
        self._remote = 0
        self._received = b""
        self.features: set[str] = set()

    async def connect(self) -> None:
        self.send(CNXN, VERSION, 65536, b"host::")
        if (await self.receive()).command == AUTH:
            self.send(AUTH, _PUBLIC_KEY, 0, self._key.encode() + b"\0")
        banner = await self.expect(CNXN)
        self.features = set(banner.payload.decode().partition("features=")[2].split(","))

    def send(self, command: int, arg0: int, arg1: int, payload: bytes = b"") -> None:
        self._writer.write(AdbMessage(command, arg0, arg1, payload).encode())

    async def receive(self) -> AdbMessage:
        """Return the next message. adbd can close a stream twice: skip CLSE of earlier streams."""
        while True:
            message = await asyncio.wait_for(read_message(self._reader, checksum=False), TIMEOUT_S)
            if message.command != CLSE or message.arg1 == self._local:
                return message

    async def expect(self, command: int) -> AdbMessage:
        message = await self.receive()
        assert message.command == command, message
        return message

    async def open(self, service: str) -> None:
        self._local += 1
        self._received = b""
        self.send(OPEN, self._local, 0, service.encode() + b"\0")
        self._remote = (await self.expect(OKAY)).arg0

    async def write(self, data: bytes) -> None:
        """Send data, and wait for its OKAY; what arrives before is kept."""
        self.send(WRTE, self._local, self._remote, data)
        while (message := await self.receive()).command == WRTE:
            self._keep(message)
        assert message.command == OKAY

    async def read(self, size: int) -> bytes:
        while len(self._received) < size:
            self._keep(await self.expect(WRTE))
        data, self._received = self._received[:size], self._received[size:]
        return data

    def _keep(self, message: AdbMessage) -> None:
        self._received += message.payload
        self.send(OKAY, self._local, self._remote)

    async def close(self) -> None:
        """Close the stream, and wait until the device has closed it."""
        self.send(CLSE, self._local, self._remote)
        message = await self.expect(CLSE)
        assert message.arg1 == self._local

    async def until_closed(self) -> bytes:
        """Return what the device sends until it closes the stream."""
        while (message := await self.receive()).command == WRTE:
            self._keep(message)
        assert message.command == CLSE
        self.send(CLSE, self._local, self._remote)
        return self._received

    async def refused(self, service: str) -> bool:
        """Return whether the device refuses a service."""
        self._local += 1
        self.send(OPEN, self._local, 0, service.encode() + b"\0")
        return (await self.receive()).command == CLSE


@contextlib.asynccontextmanager
async def connected(device: Device, adb: Adb) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", device.facts["port"])
    client = Client(reader, writer, adb.key)
    await client.connect()
    yield client
    writer.close()
    await writer.wait_closed()


async def features_of(device: Device, adb: Adb) -> set[str]:
    async with connected(device, adb) as client:
        return client.features


def test_sync_for_a_client_of_its_own(adb: Adb, phone: Device) -> None:
    data = os.urandom(150_000)

    async def send(client: Client) -> None:
        name = b"/sdcard/direct,33188"
        await client.write(_REQUEST.pack(b"SEND", len(name)) + name)
        for start in range(0, len(data), 60_000):
            block = data[start : start + 60_000]
            await client.write(_REQUEST.pack(b"DATA", len(block)) + block)
        await client.write(_REQUEST.pack(b"DONE", 1_600_000_000))
        assert await client.read(8) == _REQUEST.pack(b"OKAY", 0)

    async def receive(client: Client, name: bytes) -> bytes:
        await client.write(_REQUEST.pack(b"RECV", len(name)) + name)
        parts: list[bytes] = []
        while True:
            kind, length = _REQUEST.unpack(await client.read(_REQUEST.size))
            if kind == b"DONE":
                return b"".join(parts)
            block = await client.read(length)
            if kind == b"FAIL":
                return b"FAIL " + block
            parts.append(block)

    async def stat(client: Client, name: bytes) -> tuple[int, ...]:
        await client.write(_REQUEST.pack(b"STAT", len(name)) + name)
        kind, *numbers = struct.unpack("<4s3I", await client.read(16))
        assert kind == b"STAT"
        return tuple(numbers)

    async def names(client: Client, folder: bytes) -> set[bytes]:
        await client.write(_REQUEST.pack(b"LIST", len(folder)) + folder)
        entries: set[bytes] = set()
        while True:
            kind, _mode, _size, _time, length = struct.unpack("<4s4I", await client.read(20))
            if kind == b"DONE":
                return entries
            entries.add(await client.read(length))

    async def talk() -> None:
        async with connected(phone, adb) as client:
            for _ in range(2):  # adb-shell opens and closes a stream for each call
                await client.open("sync:")
                await send(client)
                await client.close()
            await client.open("sync:")
            mode, size, modified = await stat(client, b"/sdcard/direct")
            assert (mode & 0o170700, size, modified) == (0o100600, len(data), 1_600_000_000)
            assert await stat(client, b"/sdcard/nothing") == (0, 0, 0)
            assert await names(client, b"/sdcard") >= {b".", b"..", b"direct"}
            assert await receive(client, b"/sdcard/direct") == data
            assert await receive(client, b"/sdcard/nothing") == b"FAIL open failed: No such file or directory"
            assert await client.until_closed() == b"", "a failure ends the stream"
            await client.open("shell:rm /sdcard/direct; echo removed")
            assert (await client.until_closed()).split() == [b"removed"]

    asyncio.run(talk())


def test_services_that_are_refused(adb: Adb, phone: Device) -> None:
    async def talk() -> None:
        async with connected(phone, adb) as client:
            assert not client.features & {"abb", "abb_exec", "delayed_ack"}
            for service in ("abb:package", "abb_exec:package", "jdwp:1", "remount:", "nothing:", "shell"):
                assert service == "shell" or await client.refused(service), service
            await client.open("root:")
            assert await client.until_closed() == b"adbd cannot run as root in production builds\n"
            await client.open("exec:printf 1")
            assert await client.until_closed() == b"1"

    asyncio.run(talk())


@pytest.mark.parametrize("options", [[], ["--streaming"], ["--no-streaming"]])
def test_ways_to_install(adb: Adb, phone: Device, tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "app.apk").write_bytes(make_apk("org.mplab.ways", "1.2", 12))
    result = adb("install", "-r", *options, str(tmp_path / "app.apk"), serial=phone.address)
    assert b"Success" in result.stdout, result
    assert b"Success" in adb("uninstall", "org.mplab.ways", serial=phone.address).stdout


def test_the_chosen_adbd_answers(adb: Adb, adbd: str, phone: Device) -> None:
    assert (_DEBIANS_OWN in asyncio.run(features_of(phone, adb))) == (adbd == "debian")


def test_an_installed_adbd_is_used_by_itself(adb: Adb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not UNPACKED.exists():
        pytest.skip("tools/debian-adbd has not run")
    shutil.copytree(UNPACKED, tmp_path / "unpacked")
    installed = tmp_path / "adbd"
    folder = f"{MOUNTED}/unpacked"
    installed.write_text(f"#!/system/bin/sh\nexec {folder}/ld.so --library-path {folder}/lib {folder}/adbd\n")
    for path in (tmp_path, installed):
        path.chmod(0o755)
    monkeypatch.delenv("MPLAB_ADBD", raising=False)
    monkeypatch.setenv("MPLAB_DEBIAN_ADBD", str(installed))
    with Device(DeviceSettings(apps=False)) as device:
        adb.connect(device)
        assert _DEBIANS_OWN in asyncio.run(features_of(device, adb))
