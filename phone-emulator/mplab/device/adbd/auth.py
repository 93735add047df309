"""Authenticate hosts as adbd does, with random challenges, signatures and public keys.

A key is 2048-bit RSA in Android's own structure, base64-encoded: its length in words, a Montgomery constant, modulus
and R² in little-endian order, the exponent. After the key follow a space and ``user@host``.
"""

import base64
import binascii
import os
import struct
from collections.abc import Iterable

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed

TOKEN, SIGNATURE, PUBLIC_KEY = 1, 2, 3
"""Values of the first argument of an AUTH message."""

TOKEN_BYTES = 20
_MODULUS_BYTES = 256
_STRUCTURE = struct.Struct(f"<II{_MODULUS_BYTES}s{_MODULUS_BYTES}sI")


def new_token() -> bytes:
    """Return a random challenge of 20 bytes for a host, which signs it as if it were a SHA-1 hash."""
    return os.urandom(TOKEN_BYTES)


def parse_public_key(text: str) -> rsa.RSAPublicKey:
    """Return the public key in a line of the file ``adbkey.pub``.

    Raises:
        ValueError: the text is not a key.
    """
    try:
        structure = base64.b64decode(text.split(maxsplit=1)[0], validate=True)
        words, _constant, modulus, _square, exponent = _STRUCTURE.unpack(structure)
    except (IndexError, binascii.Error, struct.error):
        raise ValueError("not a public key of adb: a line of ~/.android/adbkey.pub is needed") from None
    if words * 4 != _MODULUS_BYTES:
        raise ValueError(f"a key of {words * 32} bits: adb's have 2048")
    return rsa.RSAPublicNumbers(exponent, int.from_bytes(modulus, "little")).public_key()


def signed_by(token: bytes, signature: bytes, keys: Iterable[str]) -> str | None:
    """Return the public key in `keys` that verifies `signature` of the challenge `token`; None if there is none."""
    for text in keys:
        try:
            parse_public_key(text).verify(signature, token, padding.PKCS1v15(), Prehashed(hashes.SHA1()))  # noqa: S303 - adb's
        except (InvalidSignature, ValueError):
            continue
        return text
    return None
