"""Encode and decode messages of adb's protocol: a header of six little-endian words, and a payload (protocol.txt)."""

import asyncio
import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<6I")
_MASK = 0xFFFFFFFF

SYNC, CNXN, AUTH, OPEN, OKAY, CLSE, WRTE = (
    int.from_bytes(name, "little") for name in (b"SYNC", b"CNXN", b"AUTH", b"OPEN", b"OKAY", b"CLSE", b"WRTE")
)
_KNOWN = {SYNC, CNXN, AUTH, OPEN, OKAY, CLSE, WRTE}

VERSION_WITH_CHECKSUM = 0x01000000
VERSION = 0x01000001
"""First protocol version without checksums of payloads: TCP and USB have their own."""
MAX_PAYLOAD = 1024 * 1024
MAX_PAYLOAD_V1 = 4096
"""Largest payload for a peer that has not yet announced its limit, bytes."""


class ProtocolError(Exception):
    """The peer does not speak adb's protocol; the connection must be closed."""


@dataclass(frozen=True)
class AdbMessage:
    """A message of adb's protocol.

    Attributes:
        command: ``CNXN``, ``OPEN``, … as a number.
        arg0: for most commands, the number of the stream at the sender.
        arg1: for most commands, the number of the stream at the receiver.
        payload: data of the message, at most as many bytes as the receiver allows.
    """

    command: int
    arg0: int
    arg1: int
    payload: bytes = b""

    def encode(self, *, checksum: bool = False) -> bytes:
        """Return the message as bytes. `checksum` must be True for peers with a version before 0x01000001."""
        check = sum(self.payload) & _MASK if checksum else 0
        header = _HEADER.pack(self.command, self.arg0, self.arg1, len(self.payload), check, self.command ^ _MASK)
        return header + self.payload


async def read_message(reader: asyncio.StreamReader, *, checksum: bool) -> AdbMessage:
    """Return the next message of the peer.

    Raises:
        ProtocolError: the bytes are not a message.
        asyncio.IncompleteReadError: the peer has closed the connection.
    """
    command, arg0, arg1, length, check, magic = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    if magic != command ^ _MASK or command not in _KNOWN:
        raise ProtocolError(f"no message of adb's protocol begins with 0x{command:08x}")
    if length > MAX_PAYLOAD:
        raise ProtocolError(f"a payload of {length} bytes: at most {MAX_PAYLOAD}")
    payload = await reader.readexactly(length)
    if checksum and command not in {CNXN, AUTH} and sum(payload) & _MASK != check:
        raise ProtocolError("the checksum of a payload is wrong")
    return AdbMessage(command, arg0, arg1, payload)
