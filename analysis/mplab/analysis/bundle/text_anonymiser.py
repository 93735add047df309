"""Replace addresses, and the names of networks and devices, in text."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from itertools import count
from urllib.parse import quote

from mplab.analysis.bundle.addresses import Addresses

KEYS = ("bssid", "bssid_hash", "host", "host_key", "machine", "serial", "ssid", "ssid_hash")
"""Keys of manifests, events, lab files and phone logs whose values become labels."""

_ENGINE = "engine"
_HOST_OF_URL = re.compile(r"^(?:ssh|tcp|https?)://(?:[^/@]*@)?([^/:@\[\]]+)")
"""The host of ``engine: ssh://lab@server`` in a lab file or manifest."""
_SHORTEST = 4
"""Minimum length of names that are replaced everywhere. Shorter names, which can be other words, are replaced only
after one of `KEYS`.
"""

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?![0-9])"
_IPV4 = re.compile(rf"(?<![0-9])(?<![0-9]\.){_OCTET}(?:\.{_OCTET}){{3}}")
_MAC = re.compile(r"[0-9A-Fa-f]{2}(?:([:-])[0-9A-Fa-f]{2})(?:\1[0-9A-Fa-f]{2}){4}")
_ANY = re.compile(
    r"(?P<colons>(?<![0-9A-Fa-f:.])[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)"
    r"|(?P<mac>(?<![0-9A-Fa-f-])[0-9A-Fa-f]{2}(?:-[0-9A-Fa-f]{2}){5}(?![0-9A-Fa-f-]))"
    rf"|(?P<ipv4>{_IPV4.pattern})"
    rf"|(?P<dashes>(?<![0-9]){_OCTET}(?:-{_OCTET}){{3}})"
    r"|(?P<hex>(?<![0-9A-WYZa-wyz])(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{12}|[0-9A-Fa-f]{8})(?![0-9A-Za-z]))"
)
_QUOTED = re.compile(r"(?:[0-9A-Fa-f]{0,4}%3[Aa]){2,7}[0-9A-Fa-f]{0,4}")
_QUOTES = re.compile('^"(.*)"$')
"""Matches a name in double quotes, as Android writes the names of networks."""
_MOST_GROUPS = 9
"""Maximum number of groups between colons in an address; text with more is, for example, the fingerprint of a key."""


@dataclass
class TextAnonymiser:
    """Replaces addresses and names in text.

    Addresses in hexadecimal or with hyphens are replaced only if `addresses` replaced them in another notation before.
    """

    addresses: Addresses
    labels: Mapping[str, str] = field(default_factory=dict)
    """Name → its replacement, see `label`."""
    vocabulary: frozenset[str] = frozenset()
    """Words that the analysis needs. They are replaced only after a key of `KEYS`."""

    def __post_init__(self) -> None:
        """Compile the regular expressions that find the names in `labels`."""
        forms = {form: label for name, label in self.labels.items() for form in _forms(name)}
        free = {f: label for f, label in forms.items() if len(f) >= _SHORTEST and f not in self.vocabulary}
        self._forms = forms
        self._behind_key = re.compile(
            rf"""((?:{"|".join(KEYS)})["']?\s*[:=]\s*["']?)({_either(forms)})(?![\w.-])""" if forms else r"(?!)"
        )
        self._free = re.compile(rf"(?<!\w)({_either(free)})(?!\w)" if free else r"(?!)")
        self._hex: dict[str, str] = {}
        self._hex_of = 0

    def __call__(self, text: str) -> str:
        """Return ``text`` with addresses and names replaced."""
        self._learn()
        text = self._behind_key.sub(lambda m: m[1] + self._forms[m[2]], text)
        text = self._free.sub(lambda m: self._forms[m[1]], text)
        text = _QUOTED.sub(lambda m: quote(self._colons(re.sub("%3[Aa]", ":", m[0])), safe=""), text)
        return _ANY.sub(lambda m: self._one(m, text), text)

    def _learn(self) -> None:
        """Collect the hexadecimal forms of all addresses that were replaced, also the forms in Linux's /proc/net."""
        if self._hex_of == len(self.addresses.replaced):
            return
        self._hex_of = len(self.addresses.replaced)
        self._hex = {}
        for old, new in list(self.addresses.replaced.items()):
            self._hex[old.hex()] = new.hex()
            if len(old) != 6:
                self._hex.setdefault(_swapped(old).hex(), _swapped(new).hex())

    def _one(self, match: re.Match[str], text: str) -> str:
        matched = match[0]
        match match.lastgroup:
            case "colons":
                start, end = match.span()
                joined = text[start - 1 : start].isalnum(), text[end : end + 1].isalnum()
                return self._colons(matched, *joined)
            case "mac":
                return self._of_mac(matched)
            case "ipv4":
                return self._of_ipv4(matched)
            case "dashes":
                return "-".join(map(str, self.addresses.replaced.get(old := _dashed(matched), old)))
        if (
            matched.isdecimal()
            and text[match.end() : match.end() + 1] != ":"
            and text[match.start() - 1] not in "\t\"'x"
        ):
            return matched  # a decimal number rather than an address
        return self._of_hex(matched)

    def _of_hex(self, found: str) -> str:
        new = self._hex.get(found.lower())
        if new is None:
            return found
        return new.upper() if found.upper() == found else new

    def _colons(self, found: str, joined_before: bool = False, joined_behind: bool = False) -> str:
        """Replace addresses in a text of hexadecimal digits, dots and colons.

        These are the longest address in the text, and IPv4 addresses before and after it.

        Args:
            found: text of hexadecimal digits, dots and colons.
            joined_before: a letter or digit precedes the text: its first group is not part of an address.
            joined_behind: a letter or digit follows the text: its last group is not part of an address.
        """
        groups = found.split(":")
        first, last = int(joined_before), len(groups) - int(joined_behind)
        if len(groups) <= _MOST_GROUPS + 2 or "::" in found:
            for size in range(min(last - first, _MOST_GROUPS + 2), 1, -1):
                for start in range(first, last - size + 1):
                    part = ":".join(groups[start : start + size])
                    new = self._of_mac(part) if _MAC.fullmatch(part) else self._of_ipv6(part)
                    if new is not None:
                        before, behind = ":".join(groups[:start]), ":".join(groups[start + size :])
                        before += ":" if start else ""
                        behind = (":" if start + size < len(groups) else "") + behind
                        return self._dotted(before) + new + self._dotted(behind)
        return self._dotted(found)

    def _dotted(self, text: str) -> str:
        return _IPV4.sub(lambda m: self._of_ipv4(m[0]), text)

    def _of_ipv4(self, found: str) -> str:
        address = IPv4Address(found).packed
        if not any(address[1:]):
            return found  # the address of a network, or a browser's version such as 144.0.0.0
        return str(IPv4Address(self.addresses(address)))

    def _of_ipv6(self, found: str) -> str | None:
        trimmed = found.rstrip(".")
        try:
            old = IPv6Address(trimmed)
        except AddressValueError:
            return None
        new = self.addresses(old.packed)
        if new == old.packed:
            return found
        text = str(IPv6Address(new))
        if "." in trimmed:
            text = f"::ffff:{IPv4Address(new[12:])}" if IPv6Address(new).ipv4_mapped else text
        return text + found[len(trimmed) :]

    def _of_mac(self, found: str) -> str:
        separator = found[2]
        old = bytes.fromhex(found.replace(separator, ""))
        text = self.addresses(old).hex(separator)
        return text.upper() if found.upper() == found else text


def label(named: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return name → label (``ssid-1``, ``host-2``) for (key, name) pairs; the label has the key and a number.

    No name is a label: numbers that would make one are skipped. Addresses get no label: `Addresses` replaces them.
    """
    pairs = list(named)
    names = {name for _, name in pairs}
    labels: dict[str, str] = {}
    numbers: dict[str, Iterator[int]] = {}
    for key, name in pairs:
        if not name or name in labels or name == "localhost" or _IPV4.search(name) or _MAC.fullmatch(name):
            continue
        try:
            IPv6Address(name)
        except AddressValueError:
            possible = (f"{key.replace('_', '-')}-{number}" for number in numbers.setdefault(key, count(1)))
            labels[name] = next(one for one in possible if one not in names)
    return labels


def named(content: object) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of a document, at any depth, for the keys in `KEYS` whose value is a text.

    Yield ("host", name) for each host in the URL of a container engine.
    """
    if isinstance(content, Mapping):
        for key, value in content.items():
            if key in KEYS and isinstance(value, str):
                yield str(key), _QUOTES.sub(r"\1", value)
            elif key == _ENGINE and isinstance(value, str):
                yield from (("host", host) for host in _HOST_OF_URL.findall(value))
            else:
                yield from named(value)
    elif isinstance(content, Sequence) and not isinstance(content, str | bytes):
        for value in content:
            yield from named(value)


def words_in(content: object) -> Iterator[str]:
    """Yield all keys of mappings in a document, at any depth."""
    if isinstance(content, Mapping):
        for key, value in content.items():
            yield str(key)
            yield from words_in(value)
    elif isinstance(content, Sequence) and not isinstance(content, str | bytes):
        for value in content:
            yield from words_in(value)


def _dashed(text: str) -> bytes:
    return IPv4Address(text.replace("-", ".")).packed


def _forms(name: str) -> set[str]:
    return {name, json.dumps(name)[1:-1], json.dumps(name, ensure_ascii=False)[1:-1], quote(name, safe="")}


def _either(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _swapped(address: bytes) -> bytes:
    """Return an address with each word of four bytes reversed, as in /proc/net/tcp on a little-endian machine."""
    return b"".join(address[at : at + 4][::-1] for at in range(0, len(address), 4))
