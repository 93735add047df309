"""Serve ``sync:``: list files, and copy them to and from the device (SYNC.TXT, and version 2 of STAT and LIST)."""

import errno
import os
import stat
import struct
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

from mplab.device.adbd.backend import Backend, as_path
from mplab.device.adbd.stream import Stream, StreamClosedError

_REQUEST = struct.Struct("<4sI")
_STAT = struct.Struct("<4s3I")
_STAT_V2 = struct.Struct("<4sIQQIIIIQqqq")
_DENT = struct.Struct("<4s4I")
_DENT_V2 = struct.Struct("<4sIQQIIIIQqqqI")
_LONGEST_PATH = 1024
_LARGEST_DATA = 64 * 1024
_MASK = 0xFFFFFFFF


class _Failure(Exception):  # noqa: N818 - the protocol's own word
    """A sync request failed; the text is sent to the host in a FAIL answer."""


class SyncService:
    """Service that answers the sync requests on one stream."""

    def __init__(self, backend: Backend, stream: Stream) -> None:
        self._backend = backend
        self._stream = stream
        self._modified = 0

    async def serve(self) -> None:
        """Answer sync requests until the host sends QUIT, or until a request fails."""
        while True:
            kind, length = _REQUEST.unpack(await self._stream.read_exactly(_REQUEST.size))
            if kind == b"QUIT":
                return
            if length > _LONGEST_PATH:
                await self._fail("path too long")
                return
            name = await self._stream.read_exactly(length)
            try:
                if not await self._answer(kind, name):
                    await self._fail(f"unknown command {kind.decode('latin-1')!r}")
                    return
            except _Failure as failure:
                await self._fail(str(failure))
                return

    async def _answer(self, kind: bytes, name: bytes) -> bool:
        path = as_path(name)
        if kind == b"STAT":
            await self._stream.write(await self._backend.on_files(lambda: _stat(path)))
        elif kind in {b"STA2", b"LST2"}:
            await self._stream.write(await self._backend.on_files(lambda: _stat_v2(kind, path)))
        elif kind in {b"LIST", b"LIS2"}:
            await self._list(path, second=kind == b"LIS2")
        elif kind == b"RECV":
            await self._receive(path)
        elif kind == b"SEND":
            await self._send(name)
        else:
            return False
        return True

    async def _fail(self, text: str) -> None:
        data = text.encode()
        await self._stream.write(_REQUEST.pack(b"FAIL", len(data)) + data)

    async def _list(self, path: Path, *, second: bool) -> None:
        entries = await self._backend.on_files(lambda: list(_entries(path, second=second)))
        end = _DENT_V2.pack(b"DONE", *[0] * 12) if second else _DENT.pack(b"DONE", 0, 0, 0, 0)
        await self._stream.write(b"".join(entries) + end)

    async def _receive(self, path: Path) -> None:
        source = await self._backend.on_files(lambda: _open(path, os.O_RDONLY, "open failed"))
        try:
            while block := await self._backend.on_files(lambda: _read(source)):
                await self._stream.write(_REQUEST.pack(b"DATA", len(block)) + block)
            await self._stream.write(_REQUEST.pack(b"DONE", 0))
        finally:
            os.close(source)

    async def _send(self, name: bytes) -> None:
        path_part, _, mode_part = name.rpartition(b",")
        try:
            mode = int(mode_part)
        except ValueError:
            path_part, mode = name, 0o100644
        for others in (0o070, 0o007):  # as adbd: the group gets the rights of the owner, and others those of the group
            mode |= mode >> 3 & others
        path = as_path(path_part)
        if stat.S_ISLNK(mode):
            await self._send_link(path)
            return
        target: int | None = None
        failure: _Failure | None = None
        try:
            target = await self._backend.on_files(lambda: _create(path, mode))
        except _Failure as found:
            failure = found
        try:
            async for block in self._blocks():
                if target is None or failure is not None:
                    continue  # the host sends all blocks before it reads the answer
                try:
                    await self._backend.on_files(partial(_write, target, block))
                except _Failure as found:
                    failure = found
        finally:
            if target is not None:
                os.close(target)
        if failure is not None:
            if target is not None:
                await self._backend.on_files(lambda: _remove(path))
            raise failure
        await self._backend.on_files(lambda: _finish(path, mode, self._modified))
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))

    async def _send_link(self, path: Path) -> None:
        target = b"".join([block async for block in self._blocks()]).rstrip(b"\0")
        await self._backend.on_files(lambda: _link(path, as_path(target)))
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))

    async def _blocks(self) -> AsyncIterator[bytes]:
        while True:
            kind, length = _REQUEST.unpack(await self._stream.read_exactly(_REQUEST.size))
            if kind == b"DONE":
                self._modified = length
                return
            if kind != b"DATA" or length > _LARGEST_DATA:
                raise StreamClosedError("not a block of a file")
            yield await self._stream.read_exactly(length)


def _stat(path: Path) -> bytes:
    try:
        status = path.lstat()
    except OSError:
        return _STAT.pack(b"STAT", 0, 0, 0)
    return _STAT.pack(b"STAT", status.st_mode, status.st_size & _MASK, int(status.st_mtime) & _MASK)


def _stat_v2(kind: bytes, path: Path) -> bytes:
    try:
        status = path.lstat() if kind == b"LST2" else path.stat()
    except OSError as error:
        return _STAT_V2.pack(kind, error.errno or errno.EIO, *[0] * 10)
    return _STAT_V2.pack(kind, 0, *_fields(status))


def _fields(found: os.stat_result) -> tuple[int, ...]:
    times = (int(found.st_atime), int(found.st_mtime), int(found.st_ctime))
    owner = (found.st_uid & _MASK, found.st_gid & _MASK)
    return (found.st_dev, found.st_ino, found.st_mode, found.st_nlink, *owner, found.st_size, *times)


def _entries(path: Path, *, second: bool) -> Iterator[bytes]:
    try:
        names = sorted(os.listdir(path))  # noqa: PTH208 - "." and ".." are sent, too
    except OSError:
        return
    for name in [".", "..", *names]:
        try:
            status = (path / name).lstat()
        except OSError:
            continue
        raw = os.fsencode(name)
        if second:
            yield _DENT_V2.pack(b"DNT2", 0, *_fields(status), len(raw)) + raw
        else:
            size, modified = status.st_size & _MASK, int(status.st_mtime) & _MASK
            yield _DENT.pack(b"DENT", status.st_mode, size, modified, len(raw)) + raw


def _open(path: Path, flags: int, what: str, mode: int = 0o644) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC, mode)
    except OSError as error:
        raise _Failure(f"{what}: {error.strerror}") from None


def _read(source: int) -> bytes:
    try:
        return os.read(source, _LARGEST_DATA)
    except OSError as error:
        raise _Failure(f"read failed: {error.strerror}") from None


def _create(path: Path, mode: int) -> int:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _Failure(f"couldn't create file: {error.strerror}") from None
    return _open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, "couldn't create file", stat.S_IMODE(mode))


def _write(target: int, block: bytes) -> None:
    view = memoryview(block)
    try:
        while view:
            view = view[os.write(target, view) :]
    except OSError as error:
        raise _Failure(f"write failed: {error.strerror}") from None


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _finish(path: Path, mode: int, modified: int) -> None:
    try:
        path.chmod(stat.S_IMODE(mode))
        os.utime(path, (modified, modified))
    except OSError as error:
        raise _Failure(f"couldn't set mode and time: {error.strerror}") from None


def _link(path: Path, target: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    except OSError as error:
        raise _Failure(f"couldn't create symlink: {error.strerror}") from None
