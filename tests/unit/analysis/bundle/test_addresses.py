"""Anonymised addresses keep shared prefixes, hide real networks, and are the same in captures and text."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mplab.analysis.bundle.addresses import KEY_BYTES, STAY_4, Addresses, CryptoPan, in_any
from mplab.analysis.bundle.text_anonymiser import TextAnonymiser, label, named

KEY = bytes(range(KEY_BYTES))
SAMPLE_KEY = bytes.fromhex("152217 8d33a4cf80130a5b1649907d10 d8988f837979652762574c2d2a842202".replace(" ", ""))
"""Key of the sample of the authors' program; the output of that program is below."""


def mapped(text: str, key: bytes = KEY) -> str:
    return str(ip_address(Addresses(key)(ip_address(text).packed)))


def shared(one: int, other: int, bits: int) -> int:
    return bits - (one ^ other).bit_length()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("128.11.68.132", "135.242.180.132"),
        ("129.118.74.4", "134.136.186.123"),
        ("130.132.252.244", "133.68.164.234"),
        ("141.223.7.43", "141.167.8.160"),
        ("141.233.145.108", "141.129.237.235"),
    ],
)
def test_it_is_crypto_pan(address: str, expected: str) -> None:
    found = CryptoPan(SAMPLE_KEY, 32)(int(IPv4Address(address)))
    assert str(IPv4Address(found)) == expected


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_what_two_addresses_share_they_still_share(one: int, other: int) -> None:
    pan = CryptoPan(KEY[:32], 32, STAY_4)
    assert shared(pan(one), pan(other), 32) == shared(one, other, 32)
    assert in_any(pan(one), 32, STAY_4) == in_any(one, 32, STAY_4)


@given(st.integers(0x2001 << 112, (0x3FFE << 112) - 1), st.integers(0, 127))
def test_so_do_two_of_ipv6(one: int, bit: int) -> None:
    addresses = Addresses(KEY)
    other = one ^ 1 << bit
    new = [int.from_bytes(addresses(value.to_bytes(16, "big")), "big") for value in (one, other)]
    if bit < 90:  # below that, no unchanged network is near
        assert shared(new[0], new[1], 128) == shared(one, other, 128)
    assert new[0] != new[1]


@given(st.sets(st.integers(0, 2**32 - 1), min_size=2, max_size=20))
def test_two_never_become_one(values: set[int]) -> None:
    addresses = Addresses(KEY)
    assert len({addresses(value.to_bytes(4, "big")) for value in values}) == len(values)


@pytest.mark.parametrize(
    "address",
    [
        "10.64.1.2",
        "10.67.0.1",
        "127.0.0.1",
        "0.0.0.0",  # noqa: S104
        "224.0.0.251",
        "255.255.255.255",
        "192.0.2.1",
        "198.51.100.7",
        "203.0.113.9",
        "::",
        "::1",
        "2001:db8::5",
        "ff02::fb",
        "::ffff:10.64.1.2",
    ],
)
def test_what_is_of_no_real_network_stays(address: str) -> None:
    assert mapped(address) == str(ip_address(address))


def test_addresses_within_addresses_are_the_same() -> None:
    four = IPv4Address(mapped("185.60.216.35"))
    assert IPv6Address(mapped("::ffff:185.60.216.35")).ipv4_mapped == four
    assert mapped("64:ff9b::185.60.216.35") == str(IPv6Address(f"64:ff9b::{four}"))
    assert str(four) != "185.60.216.35"


def test_link_local_addresses_and_their_groups_tell_no_mac() -> None:
    found = mapped("fe80::a8bb:ccff:fedd:eeff")
    assert found.startswith("fe80::")
    assert "fedd:eeff" not in found
    group = IPv6Address(mapped("ff02::1:ffdd:eeff"))
    assert group in ip_network("ff02::1:ff00:0/104")
    assert str(group) != "ff02::1:ffdd:eeff"
    mac = Addresses(KEY)(bytes.fromhex("3333ffddeeff"))
    assert mac == b"\x33\x33\xff" + group.packed[13:]


@given(st.binary(min_size=6, max_size=6))
def test_a_mac_stays_of_its_kind(mac: bytes) -> None:
    new = Addresses(KEY)(mac)
    assert new[0] & 3 == mac[0] & 3
    if not mac[0] & 1 and any(mac):
        assert new != mac


def test_another_key_gives_other_addresses() -> None:
    assert mapped("185.60.216.35") != mapped("185.60.216.35", bytes(KEY_BYTES))
    assert mapped("185.60.216.35") == mapped("185.60.216.35")


V4, V6, MAC = "185.60.216.35", "2a02:a03f:8d7a:1::17", "ac:37:43:1b:2c:3d"


@pytest.mark.parametrize(
    "around", ["{}", '"{}"', "[{}]:443", "x={},", "{}/64", "({})", "from {}: gone", "at {}.", "ip:{}"]
)
@pytest.mark.parametrize("address", [V4, V6, "::ffff:185.60.216.35", "fe80::ae37:43ff:fe1b:2c3d"])
def test_text_says_what_captures_say(around: str, address: str) -> None:
    new = mapped(address)
    if address.startswith("::ffff"):
        new = f"::ffff:{mapped(V4)}"
    assert TextAnonymiser(Addresses(KEY))(around.format(address)) == around.format(new)


@pytest.mark.parametrize(
    "text",
    [
        "12:34:56",
        "2026-09-22T10:15:00.123Z",
        "std::string a::before",
        "Chrome/144.0.0.0 curl/8.14.1",
        "1.2.3",
        "10.65.0.2:443",
        "SHA256 ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89",
        "256.1.1.1.300",
        "deadbeef",
        "0123456789abcdef" * 4,
    ],
)
def test_what_is_no_address_stays(text: str) -> None:
    assert TextAnonymiser(Addresses(KEY))(text) == text


def test_other_ways_to_write_an_address() -> None:
    addresses = Addresses(KEY)
    words = TextAnonymiser(addresses)
    words(f"{V4} {V6} {MAC}")
    new4, new_mac = addresses(IPv4Address(V4).packed), addresses(bytes.fromhex(MAC.replace(":", "")))
    assert words(MAC.upper().replace(":", "-")) == new_mac.hex("-").upper()
    assert words(MAC.replace(":", "")) == new_mac.hex()
    assert words("23D83CB9:01BB") == f"{new4[::-1].hex().upper()}:01BB", "as /proc/net/tcp has it"
    assert words("host-185-60-216-35.example") == f"host-{'-'.join(map(str, new4))}.example"
    assert words(V6.replace(":", "%3A")) == mapped(V6).replace(":", "%3A")
    assert words(IPv6Address(V6).packed.hex()) == IPv6Address(mapped(V6)).packed.hex()
    assert words("0xb93cd823") == f"0x{new4.hex()}"
    words("16.32.48.64")
    assert words("0.10203040 [10203040, -10203040]") == "0.10203040 [10203040, -10203040]", "numbers are numbers"
    assert words("10203040:0050") != "10203040:0050"
    assert words(f"{V4}.443 > {V4}.80") == f"{mapped(V4)}.443 > {mapped(V4)}.80", "as tcpdump has it"


def test_names_become_labels_wherever_they_stand() -> None:
    lab = {"routers": {"home": {"host": "router.example.org", "radio": {"ssid": 'Chez "nous"'}}, "b": {"host": V4}}}
    labels = label(named({**lab, "phones": {"p": {"serial": "0A1B2C3D"}, "q": {"ssid": "wifi", "host": "localhost"}}}))
    assert labels == {"router.example.org": "host-1", 'Chez "nous"': "ssid-1", "0A1B2C3D": "serial-1", "wifi": "ssid-2"}
    words = TextAnonymiser(Addresses(KEY), labels, frozenset({"wifi"}))
    assert words('{"ssid": "Chez \\"nous\\""}') == '{"ssid": "ssid-1"}'
    assert words("adb -s 0A1B2C3D; root@router.example.org:22") == "adb -s serial-1; root@host-1:22"
    assert words('{"ssid":"wifi","wifi":1}') == '{"ssid":"ssid-2","wifi":1}'
