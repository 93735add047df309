"""Read package name and version of an APK from its binary manifest."""

import io
import struct
import zipfile

from mplab.device.screen.protocol import InstalledPackage

_STRING_POOL, _START_ELEMENT = 0x0001, 0x0102
_UTF8 = 1 << 8
_TYPE_STRING = 3
_NONE = 0xFFFFFFFF


class ApkError(Exception):
    """The data is not a valid APK; the message is that of Android's package manager."""


def read_apk(data: bytes) -> InstalledPackage:
    """Return the app in an APK: its package name, ``versionName`` and ``versionCode``. Raises ApkError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            manifest = archive.read("AndroidManifest.xml")
    except (zipfile.BadZipFile, KeyError, ValueError):
        raise ApkError("Failed to parse /data/app/vmdl1.tmp/base.apk") from None
    try:
        attributes = _root_attributes(manifest)
        name = str(attributes["package"])
        return InstalledPackage(
            name, str(attributes.get("versionName", "")), int(attributes.get("versionCode", 1)), ".MainActivity"
        )
    except (struct.error, IndexError, KeyError, ValueError, UnicodeDecodeError):
        raise ApkError("Corrupt XML binary file") from None


def _root_attributes(manifest: bytes) -> dict[str, str | int]:
    """Return name → value of the attributes of the first element in a binary XML file (ResourceTypes.h).

    Raises:
        ValueError: the file has no element, or has a chunk with an impossible length.
    """
    strings: list[str] = []
    _kind, at, size = struct.unpack_from("<HHI", manifest)
    while at < min(size, len(manifest)):
        kind, header, length = struct.unpack_from("<HHI", manifest, at)
        if kind == _STRING_POOL:
            strings = _strings(manifest[at : at + length])
        elif kind == _START_ELEMENT:
            return _attributes(manifest[at : at + length], header, strings)
        if length < 8:
            raise ValueError(length)
        at += length
    raise ValueError("no element")


def _attributes(chunk: bytes, header: int, strings: list[str]) -> dict[str, str | int]:
    start, size, count = struct.unpack_from("<HHH", chunk, header + 8)
    attributes: dict[str, str | int] = {}
    for index in range(count):
        _space, name, raw, _size, _zero, kind, data = struct.unpack_from(
            "<IIIHBBI", chunk, header + start + index * size
        )
        text = strings[raw] if raw != _NONE else strings[data] if kind == _TYPE_STRING else None
        attributes[strings[name]] = text if text is not None else data
    return attributes


def _strings(chunk: bytes) -> list[str]:
    count, _styles, flags, start, _styles_start = struct.unpack_from("<5I", chunk, 8)
    offsets = struct.unpack_from(f"<{count}I", chunk, 28)
    return [_string(chunk, start + offset, utf8=bool(flags & _UTF8)) for offset in offsets]


def _string(chunk: bytes, at: int, *, utf8: bool) -> str:
    if utf8:
        at += 2 if chunk[at] & 0x80 else 1  # skip the length in UTF-16 units
        length, at = ((chunk[at] & 0x7F) << 8 | chunk[at + 1], at + 2) if chunk[at] & 0x80 else (chunk[at], at + 1)
        return chunk[at : at + length].decode()
    (length,) = struct.unpack_from("<H", chunk, at)
    at += 2
    return chunk[at : at + length * 2].decode("utf-16-le")
