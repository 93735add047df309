"""Write table.txt: each password and, in hexadecimal, the substitution table that ShadowSocks derives from it."""

import hashlib
import struct
from pathlib import Path


def table(password: str) -> bytes:
    (key,) = struct.unpack_from("<Q", hashlib.md5(password.encode()).digest())
    numbers = list(range(256))
    for sorting in range(1, 1024):
        numbers.sort(key=lambda number: key % (number + sorting))
    return bytes(numbers)


if __name__ == "__main__":
    lines = [f"{password}\t{table(password).hex()}\n" for password in ("foobar!", "barfoo!", "", "pässwörd", "x" * 100)]
    Path(__file__).with_suffix(".txt").write_text("".join(lines), encoding="utf-8")
