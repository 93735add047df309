"""Replace IP addresses with prefix-preserving ones, and MAC addresses with random ones.

If two IP addresses share exactly their first n bits, their replacements do, too. The construction is Crypto-PAn (Xu,
Fan, Ammar and Moon, ICNP 2002) with AES-128. Its known weakness: whoever knows some of the real addresses can infer
prefixes of others.
"""

import secrets
from dataclasses import dataclass, field
from functools import cached_property
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

KEY_BYTES: Final = 80
"""Length of a key: 32 bytes each for IPv4 and IPv6 (16 for the cipher, 16 for the padding), 16 for MAC addresses."""

MAC_BYTES: Final = 6

Range = tuple[int, int]
"""First address of a network, and the length of its prefix in bits."""


def _ranges(*networks: str) -> tuple[Range, ...]:
    parsed: list[IPv4Network | IPv6Network] = [ip_network(network) for network in networks]
    return tuple((int(network.network_address), network.prefixlen) for network in parsed)


LAB: Final = "10.64.0.0/14"
"""The virtual lab's own addresses (docs/virtual-lab.md)."""

STAY_4: Final = _ranges("0.0.0.0/8", LAB, "127.0.0.0/8", "224.0.0.0/3")
"""This host, the virtual lab, loopback, multicast and broadcast: kept, and no other address is mapped into them."""
DOCUMENTATION_4: Final = _ranges("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")
CLASSES_6: Final = _ranges("::/8", "2000::/3", "fc00::/7", "fe80::/10", "ff00::/8")
"""Reserved, global, unique local, link-local and multicast: an address stays in its class."""
DOCUMENTATION_6: Final = _ranges("2001:db8::/32", "3fff::/20")

_SOLICITED: Final = int(IPv6Address("ff02::1:ff00:0"))
_SOLICITED_MAC: Final = b"\x33\x33\xff"
_BY_PREFIX: Final = 0x2
"""Flag of a multicast address that contains a network prefix, RFC 3306."""


def new_key() -> bytes:
    """Return a random key for one bundle."""
    return secrets.token_bytes(KEY_BYTES)


def in_any(value: int, bits: int, ranges: tuple[Range, ...]) -> bool:
    """Return whether an address of ``bits`` bits is in one of the networks."""
    return any((value ^ start) >> (bits - length) == 0 for start, length in ranges)


class CryptoPan:
    """Crypto-PAn for addresses of any length up to 128 bits.

    Args:
        key: 32 bytes.
        bits: length of an address.
        kept: networks whose prefixes are kept, and into which no other address is mapped. An address outside of such
            a network keeps the leading bits that it shares with the network, and the first bit that differs.
    """

    def __init__(self, key: bytes, bits: int, kept: tuple[Range, ...] = ()) -> None:
        encryptor = Cipher(AES(key[:16]), ECB()).encryptor()  # noqa: S305 - as a function of one block, not a mode
        self._encrypt = encryptor.update
        self._pad = int.from_bytes(self._encrypt(key[16:32]), "big")
        self._bits, self._kept = bits, kept

    def __call__(self, value: int) -> int:
        """Return the address that replaces ``value``."""
        blocks = bytearray()
        for known in range(self._bits):
            below = (1 << (128 - known)) - 1
            first = value >> (self._bits - known) << (128 - known)
            blocks += (first | self._pad & below).to_bytes(16, "big")
        coded = self._encrypt(bytes(blocks))
        flips = 0
        for known in range(self._bits):
            flips = flips << 1 | (coded[known * 16] >> 7 if self._free(value, known) else 0)
        return value ^ flips

    def _free(self, value: int, known: int) -> bool:
        """Return whether the bit after the first ``known`` bits may change.

        The bit is kept if a kept prefix starts with these bits and is longer.
        """
        rest = self._bits - known
        return all(length <= known or (value ^ start) >> rest for start, length in self._kept)


@dataclass
class Addresses:
    """Maps addresses to their replacements, by one key; ``replaced`` collects all addresses that changed."""

    key: bytes
    replaced: dict[bytes, bytes] = field(default_factory=dict)
    """Old → new address, of 4 (IPv4), 16 (IPv6) or 6 bytes (MAC)."""
    _known: dict[bytes, bytes] = field(default_factory=dict)

    @cached_property
    def _pan4(self) -> CryptoPan:
        return CryptoPan(self.key[:32], 32, STAY_4)

    @cached_property
    def _pan6(self) -> CryptoPan:
        return CryptoPan(self.key[32:64], 128, CLASSES_6)

    def __call__(self, address: bytes) -> bytes:
        """Return the replacement of an address of 4, 16 or 6 bytes.

        Addresses that belong to no real network are kept, e.g. those of loopback, multicast and the virtual lab.
        """
        found = self._known.get(address)
        if found is None:
            found = {4: self._ipv4, 16: self._ipv6, 6: self._mac}[len(address)](address)
            self._known[address] = found
            if found != address:
                self.replaced[address] = found
        return found

    def _ipv4(self, address: bytes) -> bytes:
        value = int.from_bytes(address, "big")
        if in_any(value, 32, STAY_4):
            return address
        return _walk(self._pan4, value, 32, DOCUMENTATION_4).to_bytes(4, "big")

    def _ipv6(self, address: bytes) -> bytes:
        value = int.from_bytes(address, "big")
        kept = 0
        if address[0] == 0:  # an IPv4 address at the end: IPv4-mapped, or of a translator
            return address if value < 1 << 16 else address[:12] + self._ipv4(address[12:])
        if address[0] == 0xFF:
            if value >> 24 == _SOLICITED >> 24:
                kept = 104
            elif address[1] >> 4 & _BY_PREFIX:
                kept = 32
            else:
                return address
        elif address[0] == 0xFE and address[1] & 0xC0 == 0x80:
            kept = 64
        if kept:
            low = (1 << (128 - kept)) - 1
            return (value & ~low | self._pan6(value) & low).to_bytes(16, "big")
        return _walk(self._pan6, value, 128, DOCUMENTATION_6).to_bytes(16, "big")

    def _mac(self, address: bytes) -> bytes:
        if address.startswith(_SOLICITED_MAC):
            group = self._ipv6((_SOLICITED >> 24).to_bytes(13, "big") + address[3:])
            return _SOLICITED_MAC + group[13:]
        if address[0] & 1 or not any(address):
            return address
        coded = Cipher(AES(self.key[64:]), ECB()).encryptor().update(address.rjust(16, b"\0"))  # noqa: S305 - as above
        return bytes([coded[0] & 0xFC | address[0] & 3]) + coded[1:MAC_BYTES]


def _walk(pan: CryptoPan, value: int, bits: int, stay: tuple[Range, ...]) -> int:
    """Map an address, and map the result again while it is in ``stay``; addresses in ``stay`` are returned unchanged.

    One address in 2^22 needs a second step, which does not preserve its prefix.
    """
    if in_any(value, bits, stay):
        return value
    while in_any(value := pan(value), bits, stay):
        pass
    return value
