"""Makes the smallest APK that Android can identify: a zip file with only a binary manifest."""

import io
import struct
import zipfile

_NONE = 0xFFFFFFFF


def make_apk(package: str, version: str, version_code: int) -> bytes:
    """Return an APK that has only a package name, a ``versionName`` and a ``versionCode``."""
    strings = ["versionCode", "versionName", "package", "manifest", version, package]
    encoded = [struct.pack("<H", len(text)) + text.encode("utf-16-le") + b"\0\0" for text in strings]
    offsets, at = [], 0
    for item in encoded:
        offsets.append(at)
        at += len(item)
    data = b"".join(encoded)
    data += bytes(-len(data) % 4)
    start = 28 + 4 * len(strings)
    pool = struct.pack("<HHI5I", 0x0001, 28, start + len(data), len(strings), 0, 0, start, 0)
    pool += struct.pack(f"<{len(strings)}I", *offsets) + data
    attributes = b"".join(
        struct.pack("<IIIHBBI", _NONE, *rest)
        for rest in ((0, _NONE, 8, 0, 0x10, version_code), (1, 4, 8, 0, 3, 4), (2, 5, 8, 0, 3, 5))
    )
    element = struct.pack("<HHIIIIIHHHHHH", 0x0102, 16, 36 + len(attributes), 1, _NONE, _NONE, 3, 20, 20, 3, 0, 0, 0)
    chunks = pool + element + attributes
    manifest = struct.pack("<HHI", 0x0003, 8, 8 + len(chunks)) + chunks
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("AndroidManifest.xml", manifest)
    return buffer.getvalue()
