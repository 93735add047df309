"""Replace the addresses in captured frames. Fields known to hold neither address nor content stay; the rest is zeroed.

A correct checksum of IPv4 or TCP is recomputed (mptrace recognises copies of a segment by it), and a partial sum that
waited for checksum offload stays partial. All others, and those of UDP and ICMP, become 0: unchanged, they would reveal
16 bits of the replaced addresses.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

from mplab.analysis.bundle.addresses import MAC_BYTES, Addresses
from mplab.analysis.errors import BundleError

NULL, ETHERNET, PPP, RAW_BSD, RAW_OPEN, PPP_SERIAL, RAW, LOOP, SLL = 0, 1, 9, 12, 14, 50, 101, 108, 113
PPP_WITH_DIRECTION, IPV4, IPV6, SLL2 = 204, 228, 229, 276
"""Link types that mptrace reads, https://www.tcpdump.org/linktypes.html."""

_IP_TYPES, _ARP, _TAGS, _PPPOE = (0x0800, 0x86DD), 0x0806, (0x8100, 0x88A8, 0x9100), 0x8864
_TCP, _UDP, _ICMP, _ICMP6, _IPV4_IN_IP, _IPV6_IN_IP, _ROUTING, _FRAGMENT = 6, 17, 1, 58, 4, 41, 43, 44
_EXTENSIONS = (0, _ROUTING, 60, 135)
_PLAIN_OPTIONS = (2, 3, 4, 5, 8)
"""Maximum segment size, window scale, SACK permitted, SACK and timestamps: they hold no addresses."""
_MPTCP, _ADD_ADDR = 30, 3
_ADD_ADDR_SIZES = {8: 4, 10: 4, 16: 4, 18: 4, 20: 16, 22: 16, 28: 16, 30: 16}
"""Size of an ADD_ADDR option (RFC 8684 §3.4.1; RFC 6824) → size of the address in it, both in bytes."""
_HMAC = 8
_NUMBERS = {_ICMP: (0, 3, 8, 11, 12), _ICMP6: (1, 2, 3, 4, 128, 129)}
"""Protocol → ICMP types whose second word is kept: it holds an echo identifier, an MTU or a pointer, no address."""
_REDIRECT = 5


@dataclass(frozen=True)
class Frames:
    """Anonymises frames."""

    addresses: Addresses

    def __call__(self, link_type: int, frame: bytes) -> bytes:
        """Return the anonymised frame, of the same length. Raises BundleError for an unknown link type."""
        f = bytearray(frame)
        self._link(link_type, f)
        return bytes(f)

    def _link(self, link_type: int, f: bytearray) -> None:
        if link_type in (RAW, RAW_BSD, RAW_OPEN, IPV4, IPV6):
            self._ip(f, 0)
        elif link_type in (NULL, LOOP):
            self._ip(f, 4)
        elif link_type in (PPP, PPP_WITH_DIRECTION) or (
            link_type == PPP_SERIAL and not f.startswith((b"\x0f", b"\x8f"))
        ):
            self._ppp(f, int(link_type == PPP_WITH_DIRECTION))
        elif link_type == PPP_SERIAL:
            self._behind_type(f, 4, 2)
        elif link_type == ETHERNET:
            self._replace(f, 0, MAC_BYTES)
            self._replace(f, MAC_BYTES, MAC_BYTES)
            self._behind_type(f, 14, 12)
        elif link_type == SLL:
            self._station(f, 6, f[4:6])
            self._behind_type(f, 16, 14)
        elif link_type == SLL2:
            self._station(f, 12, f[11:12])
            self._behind_type(f, 20, 0)
        else:
            raise BundleError(f"link type {link_type} is none whose addresses are known")

    def _station(self, f: bytearray, at: int, size: bytes | bytearray) -> None:
        """Replace the address in a header of Linux cooked mode: a field of 8 bytes, of which ``size`` are used."""
        if int.from_bytes(size, "big") == MAC_BYTES:
            self._replace(f, at, MAC_BYTES)
            _blank(f, at + MAC_BYTES, at + 8)
        else:
            _blank(f, at, at + 8)

    def _behind_type(self, f: bytearray, header: int, type_at: int) -> None:
        while len(f) >= header:
            kind = int.from_bytes(f[type_at : type_at + 2], "big")
            if kind in _TAGS:
                type_at, header = header + 2, header + 4
                continue
            if kind in _IP_TYPES:
                self._ip(f, header)
            elif kind == _ARP:
                self._arp(f, header)
            elif kind == _PPPOE:
                self._ppp(f, header + 6)
            else:
                _blank(f, header)
            return

    def _ppp(self, f: bytearray, at: int) -> None:
        if f[at : at + 2] == b"\xff\x03":
            at += 2
        at += f[at : at + 1] == b"\0"
        if f.startswith((b"\x21", b"\x57"), at):
            self._ip(f, at + 1)
        else:
            _blank(f, at)

    def _arp(self, f: bytearray, at: int) -> None:
        if f[at + 2 : at + 6] != b"\x08\x00\x06\x04" or len(f) < at + 28:
            _blank(f, at + 8)
            return
        for offset, size in ((8, MAC_BYTES), (14, 4), (18, MAC_BYTES), (24, 4)):
            self._replace(f, at + offset, size)
        _blank(f, at + 28)

    def _ip(self, f: bytearray, at: int) -> None:
        version = f[at] >> 4 if len(f) > at else 0
        if version == 4:
            self._ipv4(f, at)
        elif version == 6:
            self._ipv6(f, at)
        else:
            _blank(f, at)

    def _ipv4(self, f: bytearray, at: int) -> None:
        end = at + (f[at] & 15) * 4
        if end < at + 20 or len(f) < end:
            _blank(f, at + 10)
            return
        right = _checksum(f[at:end]) == 0
        old = bytes(f[at + 12 : at + 20])
        self._replace(f, at + 12, 4)
        self._replace(f, at + 16, 4)
        _blank(f, at + 20, end)
        _blank(f, at + 10, at + 12)
        if right:
            struct.pack_into("!H", f, at + 10, _checksum(f[at:end]))
        first = not int.from_bytes(f[at + 6 : at + 8], "big") & 0x1FFF
        wire = int.from_bytes(f[at + 2 : at + 4], "big") - (end - at)
        self._transport(f, f[at + 9] if first else -1, end, _Pseudo(old, bytes(f[at + 12 : at + 20]), wire))

    def _ipv6(self, f: bytearray, at: int) -> None:
        if len(f) < at + 40:
            _blank(f, at + 8)
            return
        old = bytes(f[at + 8 : at + 40])
        self._replace(f, at + 8, 16)
        self._replace(f, at + 24, 16)
        new, ends = bytes(f[at + 8 : at + 40]), at + 40 + int.from_bytes(f[at + 4 : at + 6], "big")
        following, at = f[at + 6], at + 40
        while len(f) >= at + 8 and following in (*_EXTENSIONS, _FRAGMENT):
            size = 8 if following == _FRAGMENT else (f[at + 1] + 1) * 8
            if following == _FRAGMENT:
                later = int.from_bytes(f[at + 2 : at + 4], "big") >> 3 != 0
                following = -1 if later else f[at]
            else:
                _blank(f, at + (4 if following == _ROUTING else 2), at + size)
                following = f[at]
            at += size
        self._transport(f, following, at, _Pseudo(old, new, ends - at))

    def _transport(self, f: bytearray, protocol: int, at: int, pseudo: "_Pseudo") -> None:
        known: dict[int, Callable[[bytearray, int], None]] = {
            _UDP: _udp,
            _IPV4_IN_IP: self._ip,
            _IPV6_IN_IP: self._ip,
        }
        if protocol == _TCP:
            self._tcp(f, at, pseudo)
        elif protocol in _NUMBERS:
            self._icmp(f, protocol, at)
        else:
            known.get(protocol, _blank)(f, at)

    def _icmp(self, f: bytearray, protocol: int, at: int) -> None:
        kind = f[at] if len(f) > at else -1
        _blank(f, at + 2, at + 4)
        if protocol == _ICMP and kind == _REDIRECT:
            self._replace(f, at + 4, 4)
        elif kind not in _NUMBERS[protocol]:
            _blank(f, at + 4)
        _blank(f, at + 8)

    def _tcp(self, f: bytearray, at: int, pseudo: "_Pseudo") -> None:
        checksum = int.from_bytes(f[at + 16 : at + 18], "big")
        _blank(f, at + 16, at + 18)
        if len(f) < at + 20:
            return
        whole = at + (f[at + 12] >> 4) * 4
        end = min(whole, len(f))
        before = bytes(f[at:end])
        option = at + 20
        while option < end and f[option] != 0:
            if f[option] == 1:
                option += 1
                continue
            size = f[option + 1] if option + 1 < end else 0
            if size < 2 or option + size > end:
                break
            self._option(f, option, size)
            option += size
        _blank(f, min(option, end))
        if at + 20 <= whole == end:
            struct.pack_into("!H", f, at + 16, pseudo.carry(checksum, before, bytes(f[at:end])))

    def _option(self, f: bytearray, at: int, size: int) -> None:
        if f[at] in _PLAIN_OPTIONS or (f[at] == _MPTCP and size > 2 and f[at + 2] >> 4 != _ADD_ADDR):
            return
        address = _ADD_ADDR_SIZES.get(size, 0)
        if f[at] != _MPTCP or not address:
            _blank(f, at + 2, at + size)
            return
        self._replace(f, at + 4, address)
        if size >= 4 + address + _HMAC:  # with the keys in the capture, it would reveal the address
            _blank(f, at + size - _HMAC, at + size)

    def _replace(self, f: bytearray, at: int, size: int) -> None:
        if len(f) >= at + size:
            f[at : at + size] = self.addresses(bytes(f[at : at + size]))
        else:
            _blank(f, at)


@dataclass(frozen=True)
class _Pseudo:
    """Pseudo header of a TCP segment (RFC 9293 §3.1): old and new addresses, and the length of the segment in bytes."""

    old: bytes
    new: bytes
    size: int

    def carry(self, checksum: int, before: bytes, after: bytes) -> int:
        """Return the checksum for the new header, or 0.

        A partial sum for checksum offload stays partial. If the payload was cut off, the old checksum is trusted. The
        result is 0 if the old checksum is 0 or wrong, or if the header is longer than the segment.

        Args:
            checksum: checksum of the old header.
            before: the old header, with a zero checksum.
            after: the new header, with a zero checksum.
        """
        if self.size < len(before) or checksum == 0:
            return 0
        rest = _TCP + self.size
        if (checksum - rest - _sum(self.old)) % 0xFFFF == 0:  # checksum offload: only the pseudo header was summed
            return (checksum + _sum(self.new) - _sum(self.old)) % 0xFFFF
        if self.size == len(before) and (checksum + rest + _sum(self.old) + _sum(before)) % 0xFFFF != 0:
            return 0
        change = _sum(self.new) + _sum(after) - _sum(self.old) - _sum(before)
        return 0xFFFF - (0xFFFF - checksum + change) % 0xFFFF


def _udp(f: bytearray, at: int) -> None:
    _blank(f, at + 6)


def _blank(f: bytearray, start: int, end: int | None = None) -> None:
    end = len(f) if end is None else min(end, len(f))
    if start < end:
        f[start:end] = bytes(end - start)


def _sum(words: bytes | bytearray) -> int:
    return int(sum(struct.unpack(f"!{len(words) // 2}H", words)))


def _checksum(header: bytes | bytearray) -> int:
    return 0 if any(header) and _sum(header) % 0xFFFF == 0 else 0xFFFF - _sum(header) % 0xFFFF
