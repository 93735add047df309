"""The filter before Debian's adbd, with a fake adbd; the choice of adbd."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from mplab.base.errors import InputError, LabNotReadyError
from mplab.device.adbd import debian
from mplab.device.adbd.connection import Connection
from mplab.device.adbd.debian import MOUNTED, DebianAdbd, FilteredConnection, find_adbd
from mplab.device.adbd.message import AUTH, CLSE, CNXN, OKAY, OPEN, VERSION, WRTE, AdbMessage, read_message
from mplab.device.adbd.stream import Stream

_TIMEOUT_S = 10.0
_ANNOUNCED = b"device::ro.product.name=;features=shell_v2,abb,abb_exec,delayed_ack,sendrecv_v2"


class Phone:
    """A device that trusts every host."""

    trusted_keys = None
    banner = b"device::ro.product.name=panther;features=shell_v2"

    async def delay(self) -> None:
        """Return at once."""


class Locked(Phone):
    """A device that trusts no host."""

    trusted_keys: tuple[str, ...] = ()  # type: ignore[assignment]

    def offer_key(self, _key: str) -> bool:
        return False


class FakeAdbd:
    """An adbd that accepts one host, and keeps its messages."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[AdbMessage] = asyncio.Queue()
        self.tasks: list[Any] = []
        self._port = 0
        self._writer: asyncio.StreamWriter | None = None

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.append(asyncio.current_task())
        self._writer = writer
        try:
            while True:
                self.received.put_nowait(await read_message(reader, checksum=False))
        except asyncio.IncompleteReadError:
            writer.close()
            await writer.wait_closed()

    def listens(self, server: asyncio.Server) -> None:
        self._port = server.sockets[0].getsockname()[1]

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port)

    def send(self, command: int, arg0: int, arg1: int, payload: bytes = b"") -> None:
        assert self._writer is not None
        self._writer.write(AdbMessage(command, arg0, arg1, payload).encode())

    def die(self) -> None:
        assert self._writer is not None
        self._writer.close()

    async def next(self) -> AdbMessage:
        return await asyncio.wait_for(self.received.get(), _TIMEOUT_S)


class Host:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    def send(self, command: int, arg0: int, arg1: int, payload: bytes = b"") -> None:
        self.writer.write(AdbMessage(command, arg0, arg1, payload).encode(checksum=True))

    async def receive(self) -> AdbMessage:
        return await asyncio.wait_for(read_message(self._reader, checksum=False), _TIMEOUT_S)


def filtered(talk: Callable[[Host, FakeAdbd], Awaitable[None]], phone: object = None) -> None:
    """Let a host talk to a fake adbd through the filter; the filter answers its own services with their name."""

    async def serve(connection: Connection, stream: Stream, address: str) -> None:
        if address != "unknown:":
            connection.accept(stream)
            await stream.write(address.encode())

    async def main() -> None:
        adbd = FakeAdbd()
        backend: Any = phone or Phone()
        daemon: Any = adbd
        tasks: list[Any] = adbd.tasks

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.append(asyncio.current_task())
            connection = FilteredConnection(reader, writer, backend, serve, daemon)
            await connection.run()
            await connection.finish()

        async with (
            await asyncio.start_server(adbd.accept, "127.0.0.1", 0) as inner,
            await asyncio.start_server(connected, "127.0.0.1", 0) as outer,
        ):
            adbd.listens(inner)
            host = Host(*await asyncio.open_connection(*outer.sockets[0].getsockname()))
            host.send(CNXN, VERSION, 65536, b"host::features=shell_v2,delayed_ack")
            await talk(host, adbd)
            host.writer.close()
            await host.writer.wait_closed()
            await asyncio.wait_for(asyncio.gather(*tasks), _TIMEOUT_S)

    asyncio.run(main())


async def come_in(host: Host, adbd: FakeAdbd) -> AdbMessage:
    """Answer the filter's CNXN as adbd does, and return the CNXN that the host receives."""
    greeting = await adbd.next()
    assert (greeting.command, greeting.arg1, greeting.payload) == (CNXN, 65536, b"host::features=shell_v2")
    adbd.send(CNXN, VERSION, 262144, _ANNOUNCED)
    return await host.receive()


def test_the_banner_is_the_phones_and_the_features_are_those_that_are_served() -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        banner = await come_in(host, adbd)
        assert (banner.command, banner.arg1) == (CNXN, 262144)
        assert banner.payload == b"device::ro.product.name=panther;features=shell_v2,sendrecv_v2"

    filtered(talk)


def test_streams_pass_in_both_directions() -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        await come_in(host, adbd)
        for service in (b"shell,v2,raw:id\0", b"sync:\0", b"exec:id\0", b"tcp:80\0", b"reverse:list-forward\0"):
            host.send(OPEN, 5, 0, service)
            assert await adbd.next() == AdbMessage(OPEN, 5, 0, service)
        for message in (
            AdbMessage(OKAY, 9, 5),
            AdbMessage(WRTE, 9, 5, b"x" * 5000),
            AdbMessage(OPEN, 12, 0, b"tcp:1\0"),
        ):
            adbd.send(message.command, message.arg0, message.arg1, message.payload)
            assert await host.receive() == message
        host.send(WRTE, 5, 9, b"data")
        assert await adbd.next() == AdbMessage(WRTE, 5, 9, b"data")
        host.send(CLSE, 5, 9)
        assert await adbd.next() == AdbMessage(CLSE, 5, 9)

    filtered(talk)


@pytest.mark.parametrize("service", ["reboot:", "root:", "unroot:", "tcpip:5555", "reboot:bootloader"])
def test_adbd_does_not_see_what_the_filter_serves(service: str) -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        await come_in(host, adbd)
        host.send(OPEN, 3, 0, service.encode() + b"\0")
        okay = await host.receive()
        assert (okay.command, okay.arg1) == (OKAY, 3)
        answer = await host.receive()
        assert (answer.command, answer.payload) == (WRTE, service.encode())
        host.send(OKAY, 3, okay.arg0)
        assert (await host.receive()).command == CLSE
        host.send(CLSE, 3, okay.arg0)
        host.send(OPEN, 4, 0, b"shell:\0")
        assert (await adbd.next()).arg0 == 4, "nothing came before"

    filtered(talk)


def test_unknown_services_are_refused_by_the_filter() -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        await come_in(host, adbd)
        host.send(OPEN, 3, 0, b"unknown:\0")
        refusal = await host.receive()
        assert (refusal.command, refusal.arg0, refusal.arg1) == (CLSE, 0, 3)
        assert adbd.received.empty()

    filtered(talk)


def test_a_host_that_is_not_trusted_reaches_nothing() -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        assert (await host.receive()).command == AUTH
        host.send(OPEN, 3, 0, b"shell:id\0")
        host.send(AUTH, 3, 0, b"a key\0")
        host.send(AUTH, 2, 0, b"a signature")
        assert (await host.receive()).command == AUTH, "a new challenge is the only answer"
        assert adbd.received.empty()

    filtered(talk, Locked())


def test_the_host_is_cut_off_when_adbd_dies() -> None:
    async def talk(host: Host, adbd: FakeAdbd) -> None:
        await come_in(host, adbd)
        adbd.die()
        with pytest.raises(asyncio.IncompleteReadError):
            await host.receive()

    filtered(talk)


@pytest.fixture
def unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(debian, "UNPACKED", tmp_path / "unpacked")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr("mplab.base.programs._SYSTEM_PATH", ())
    return tmp_path / "unpacked"


def test_without_an_installed_adbd_the_device_uses_its_own(unpacked: Path) -> None:
    assert find_adbd({}) is None
    assert find_adbd({"MPLAB_ADBD": "own"}) is None
    with pytest.raises(LabNotReadyError, match="neither installed nor unpacked; run tools/debian-adbd"):
        find_adbd({"MPLAB_ADBD": "debian"})
    unpacked.mkdir()
    (unpacked / "adbd").touch()
    assert find_adbd({}) is None
    chosen = find_adbd({"MPLAB_ADBD": "debian"})
    assert chosen is not None
    assert chosen.folder == unpacked


@pytest.mark.usefixtures("unpacked")
def test_an_installed_adbd_is_used(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "adbd").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "adbd").chmod(0o755)
    used = DebianAdbd(tmp_path / "bin", f"{MOUNTED}/adbd")
    assert find_adbd({}) == find_adbd({"MPLAB_ADBD": "debian"}) == used
    assert find_adbd({"MPLAB_ADBD": "own"}) is None


def test_a_wrong_choice_is_refused() -> None:
    with pytest.raises(InputError, match="MPLAB_ADBD=google: must be 'own' or 'debian'"):
        find_adbd({"MPLAB_ADBD": "google"})
