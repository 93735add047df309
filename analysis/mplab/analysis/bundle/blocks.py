"""Rewrite the frames of pcapng files (draft-ietf-opsawg-pcapng).

Comments, decryption secrets, name resolution and all unknown kinds of blocks are dropped.
"""

import gzip
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from mplab.analysis.bundle.frames import Frames
from mplab.analysis.errors import BundleError
from mplab.analysis.record.decode import COMPRESSED

_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
_BEFORE_FRAME = {_OLD_PACKET: 20, _PACKET: 20, _SIMPLE: 4}
_KEPT_OPTIONS = {
    _INTERFACE: (2, 9, 13, 14),  # name, clock, frame check sequence
    _STATISTICS: tuple(range(2, 9)),  # times and counters
    _PACKET: (2, 4),  # flags and losses
}
_FIXED = {_INTERFACE: 8, _STATISTICS: 12}
"""Bytes between the header and the options of a block."""
_BIGGEST = 1 << 24
_WHOLE = 12


class _CutError(Exception):
    """The file ends within a block, or a block contradicts itself."""


def rewrite(source: Path, target: Path, frames: Frames) -> bool:
    """Write a capture with rewritten frames, and return whether the source was whole.

    Of a capture that is cut off or damaged, the blocks before the damage are written.

    Raises:
        BundleError: the source is no pcapng file, or has a link type whose addresses are not known.
        OSError: the source cannot be read, or the target cannot be written.
    """
    with _opened(source, "rb") as old, _opened(target, "wb") as new:
        if old.peek(4)[:4] != _SECTION.to_bytes(4, "big"):  # type: ignore[attr-defined]
            raise BundleError("it is no pcapng file")
        try:
            for block in _blocks(old, frames):
                new.write(block)
        except (_CutError, EOFError, gzip.BadGzipFile, struct.error):
            return False
    return True


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[IO[bytes]]:
    with path.open(mode) as file:
        if path.suffix != COMPRESSED:
            yield cast("IO[bytes]", file)
            return
        with gzip.GzipFile(filename="", mode=mode, fileobj=cast("IO[bytes]", file), mtime=0) as packed:
            yield cast("IO[bytes]", packed)


def _blocks(file: IO[bytes], frames: Frames) -> Iterator[bytes]:
    order, links = "<", list[int]()
    while start := file.read(_WHOLE):
        if start[:4] == _SECTION.to_bytes(4, "big"):
            order = "<" if start[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack_from(f"{order}2I", start)
        if size < _WHOLE or size % 4 or size > _BIGGEST:
            raise _CutError
        block = start + file.read(size - _WHOLE)
        if len(block) < size or struct.unpack_from(f"{order}I", block, size - 4)[0] != size:
            raise _CutError
        body = block[8:-4]
        if kind == _SECTION:
            yield _block(order, kind, body[:8] + b"\xff" * 8)
        elif kind in _FIXED:
            if kind == _INTERFACE:
                links.append(struct.unpack_from(f"{order}H", body)[0])
            yield _block(order, kind, body[: _FIXED[kind]] + _options(order, kind, body[_FIXED[kind] :]))
        elif kind in _BEFORE_FRAME:
            yield _block(order, kind, _frame(order, kind, body, links, frames))


def _frame(order: str, kind: int, body: bytes, links: list[int], frames: Frames) -> bytes:
    before = _BEFORE_FRAME[kind]
    captured = len(body) - before
    interface = 0
    if kind != _SIMPLE:
        interface = struct.unpack_from(f"{order}{'H' if kind == _OLD_PACKET else 'I'}", body)[0]
        captured = struct.unpack_from(f"{order}I", body, 12)[0]
    if interface >= len(links) or not 0 <= captured <= len(body) - before:
        raise _CutError
    frame = frames(links[interface], body[before : before + captured])
    behind = before + captured + -captured % 4
    return body[:before] + frame + bytes(-captured % 4) + _options(order, kind, body[behind:])


def _options(order: str, kind: int, options: bytes) -> bytes:
    kept, at = b"", 0
    while len(options) >= at + 4:
        code, size = struct.unpack_from(f"{order}2H", options, at)
        end = at + 4 + size + -size % 4
        if code == 0 or end > len(options):
            break
        if code in _KEPT_OPTIONS.get(kind, ()):
            kept += options[at:end]
        at = end
    return kept + bytes(4) if kept else b""


def _block(order: str, kind: int, body: bytes) -> bytes:
    size = len(body) + _WHOLE
    return struct.pack(f"{order}2I", kind, size) + body + struct.pack(f"{order}I", size)
