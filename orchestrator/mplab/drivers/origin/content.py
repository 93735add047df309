"""Generate files of an exact size that are valid for their type, cheap to decode, and hard to compress."""

import base64
import json
import math
import struct
import zlib
from collections.abc import Mapping, Sequence

import numpy as np

_PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_CHUNK_OVERHEAD = 12
_PADDING_CHUNK = b"mpLb"
"""Ancillary, private, safe to copy (PNG specification §5.4): decoders skip it."""
_PIXELS_PER_BYTE = 4
_WIDTH_RANGE = (32, 400)
HTML_COMMENT, CODE_COMMENT = ("<!--", "-->"), ("/*", "*/")
FRAME = (
    '<!doctype html><html><head><meta charset="utf-8"><title>frame</title></head>',
    "<body><p>Frame</p></body></html>",
)


def png(size: int, rng: np.random.Generator) -> bytes:
    """Return a PNG file of `size` bytes: an image of one colour, about 4 pixels per byte, at most 400 × 300 pixels.

    Raises:
        ValueError: `size` is smaller than the PNG without padding.
    """
    low, high = _WIDTH_RANGE
    width = min(max(math.isqrt(size * _PIXELS_PER_BYTE * 4 // 3), low), high)
    height = width * 3 // 4
    row = bytes(1 + (width + 7) // 8)
    body = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 3, 0, 0, 0)),
        _chunk(b"PLTE", rng.bytes(3)),
        _chunk(b"IDAT", zlib.compress(row * height, 9)),
        _chunk(b"IEND", b""),
    ]
    padding = size - len(_PNG_SIGNATURE) - sum(map(len, body)) - _CHUNK_OVERHEAD
    _check_room(padding, "PNG", size)
    # The padding comes before the image data: a browser can paint nothing until the last byte has arrived.
    return b"".join([_PNG_SIGNATURE, *body[:2], _chunk(_PADDING_CHUNK, rng.bytes(padding)), *body[2:]])


MIN_PNG_BYTES = 250
"""Smallest size for which `png` always works."""


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def padded_text(parts: Sequence[str], size: int, comment: tuple[str, str], rng: np.random.Generator) -> bytes:
    """Return `parts` joined by comments of random text, exactly `size` bytes in total.

    Args:
        parts: text without padding, in order.
        size: size of the result, bytes.
        comment: start and end of a comment in the language of the text.
        rng: source of the random text.

    Raises:
        ValueError: the parts are longer than `size`.
    """
    text_bytes = sum(len(part.encode()) for part in parts)
    room, gaps = size - text_bytes, len(parts) - 1
    _check_room(room, "text", size)
    pieces: list[str] = []
    for number, part in enumerate(parts):
        share = room // (gaps - number) if number < gaps else 0
        room -= share
        pieces += [part, _comment(share, comment, rng)]
    return "".join(pieces).encode()


def _comment(length: int, marks: tuple[str, str], rng: np.random.Generator) -> str:
    opening, closing = marks
    inner = length - len(opening) - len(closing)
    return opening + _random_text(inner, rng) + closing if inner > 0 else " " * length


def _random_text(length: int, rng: np.random.Generator) -> str:
    return base64.b64encode(rng.bytes(length * 3 // 4 + 3)).decode()[:length]


def data_json(size: int, rng: np.random.Generator) -> bytes:
    """Return a JSON object of `size` bytes: one key with a long random text.

    Raises:
        ValueError: `size` is too small.
    """
    head, tail = '{"d":"', '"}'
    room = size - len(head) - len(tail)
    _check_room(room, "JSON", size)
    return (head + _random_text(room, rng) + tail).encode()


def script_parts(images: Sequence[str], scripts: Sequence[str], data: Sequence[str]) -> list[str]:
    """Return JavaScript that inserts images and scripts and fetches data, as parts that `padded_text` joins.

    The page's load event does not wait for ``fetch``. Therefore the script keeps the document of a hidden frame open,
    which delays the load event until the data has arrived.
    """
    lines = ["(function(){'use strict';var d=document,n=0;for(var i=0;i<200;i++)n+=i;"]
    if images or scripts:
        lines.append("function a(t,u){var e=d.createElement(t);e.src=u;d.body.appendChild(e)}")
    lines += [f"a('img','{url}');" for url in images]
    lines += [f"a('script','{url}');" for url in scripts]
    if data:
        lines.append(
            "var f=d.createElement('iframe');f.style.display='none';d.body.appendChild(f);"
            "var g=f.contentDocument;g.open();function c(){g.close()}"
            "Promise.all(" + json.dumps(list(data)) + ".map(function(u){"
            "return fetch(u).then(function(r){return r.text()})})).then(c,c);"
        )
    return ["".join(lines), "})();"]


def sheet_parts(number: int, images: Mapping[int, str]) -> list[str]:
    """Return a style sheet that shows background images, as parts that `padded_text` joins.

    The rule for image 7 applies to the HTML class ``b7``.

    Args:
        number: number of the style sheet.
        images: number of the image → URL.
    """
    rules = [f".s{number}{{color:#{number % 10}{number % 7}3}}"]
    rules += [f".b{image}{{background-image:url({url})}}" for image, url in images.items()]
    return ["".join(rules), "/**/"]


def _check_room(room: int, kind: str, size: int) -> None:
    if room < 0:
        raise ValueError(f"{kind} of {size} bytes: {-room} bytes too small for its content")
