"""Addresses in text are replaced as in captures; analysis/mptrace/internal/anonymise tests the replacements."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from mplab.analysis.bundle.addresses import KEY_BYTES, Addresses
from mplab.analysis.bundle.text_anonymiser import TextAnonymiser, label, named
from mplab.analysis.errors import BundleError, ProgramMissingError

KEY = bytes(range(KEY_BYTES))


@pytest.fixture
def addresses() -> Iterator[Addresses]:
    try:
        replaced_by_key = Addresses(KEY)
    except ProgramMissingError:
        pytest.skip("mptrace has not been built")
    with replaced_by_key:
        yield replaced_by_key


def mapped(addresses: Addresses, text: str) -> str:
    return str(ip_address(addresses(ip_address(text).packed)))


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
def test_what_is_of_no_real_network_stays(address: str, addresses: Addresses) -> None:
    assert mapped(addresses, address) == str(ip_address(address))
    assert addresses.replaced == {}


def test_addresses_within_addresses_are_the_same(addresses: Addresses) -> None:
    four = IPv4Address(mapped(addresses, "185.60.216.35"))
    assert IPv6Address(mapped(addresses, "::ffff:185.60.216.35")).ipv4_mapped == four
    assert mapped(addresses, "64:ff9b::185.60.216.35") == str(IPv6Address(f"64:ff9b::{four}"))
    assert str(four) != "185.60.216.35"
    assert mapped(addresses, "ab:cd::1:23:45:67").startswith("ab:cd::1:23:"), "no MAC address"


def test_another_key_gives_other_addresses(addresses: Addresses) -> None:
    with Addresses(bytes(KEY_BYTES)) as other, Addresses() as random, Addresses() as another:
        results = {mapped(mapping, "185.60.216.35") for mapping in (addresses, other, random, another)}
    assert len(results) == 4
    assert "185.60.216.35" not in results


def test_an_mptrace_that_ends_is_an_error(addresses: Addresses) -> None:
    with pytest.raises(BundleError, match="mptrace does not replace the address"):
        addresses._answer("no address")


V4, V6, MAC = "185.60.216.35", "2a02:a03f:8d7a:1::17", "ac:37:43:1b:2c:3d"


@pytest.mark.parametrize(
    "around", ["{}", '"{}"', "[{}]:443", "x={},", "{}/64", "({})", "from {}: gone", "at {}.", "ip:{}"]
)
@pytest.mark.parametrize("address", [V4, V6, "::ffff:185.60.216.35", "fe80::ae37:43ff:fe1b:2c3d"])
def test_text_says_what_captures_say(around: str, address: str, addresses: Addresses) -> None:
    new = mapped(addresses, address)
    if address.startswith("::ffff"):
        new = f"::ffff:{mapped(addresses, V4)}"
    assert TextAnonymiser(addresses)(around.format(address)) == around.format(new)


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
def test_what_is_no_address_stays(text: str, addresses: Addresses) -> None:
    assert TextAnonymiser(addresses)(text) == text


def test_other_ways_to_write_an_address(addresses: Addresses) -> None:
    words = TextAnonymiser(addresses)
    words(f"{V4} {V6} {MAC}")
    new4, new_mac = addresses(IPv4Address(V4).packed), addresses(bytes.fromhex(MAC.replace(":", "")))
    assert words(MAC.upper().replace(":", "-")) == new_mac.hex("-").upper()
    assert words(MAC.replace(":", "")) == new_mac.hex()
    assert words("23D83CB9:01BB") == f"{new4[::-1].hex().upper()}:01BB", "as /proc/net/tcp has it"
    assert words("host-185-60-216-35.example") == f"host-{'-'.join(map(str, new4))}.example"
    assert words(V6.replace(":", "%3A")) == mapped(addresses, V6).replace(":", "%3A")
    assert words(IPv6Address(V6).packed.hex()) == IPv6Address(mapped(addresses, V6)).packed.hex()
    assert words("0xb93cd823") == f"0x{new4.hex()}"
    words("16.32.48.64")
    assert words("0.10203040 [10203040, -10203040]") == "0.10203040 [10203040, -10203040]", "numbers are numbers"
    assert words("10203040:0050") != "10203040:0050"
    new = mapped(addresses, V4)
    assert words(f"{V4}.443 > {V4}.80") == f"{new}.443 > {new}.80", "as tcpdump has it"


def test_no_name_is_the_label_of_a_name() -> None:
    labels = label([("host", "host-1"), ("host", "host-3"), ("ssid", "host-2"), ("host", "gateway")])
    assert labels == {"host-1": "host-4", "host-3": "host-5", "host-2": "ssid-1", "gateway": "host-6"}


def test_names_become_labels_wherever_they_stand(addresses: Addresses) -> None:
    lab = {"routers": {"home": {"host": "router.example.org", "radio": {"ssid": 'Chez "nous"'}}, "b": {"host": V4}}}
    labels = label(named({**lab, "phones": {"p": {"serial": "0A1B2C3D"}, "q": {"ssid": "wifi", "host": "localhost"}}}))
    assert labels == {"router.example.org": "host-1", 'Chez "nous"': "ssid-1", "0A1B2C3D": "serial-1", "wifi": "ssid-2"}
    words = TextAnonymiser(addresses, labels, frozenset({"wifi"}))
    assert words('{"ssid": "Chez \\"nous\\""}') == '{"ssid": "ssid-1"}'
    assert words("adb -s 0A1B2C3D; root@router.example.org:22") == "adb -s serial-1; root@host-1:22"
    assert words('{"ssid":"wifi","wifi":1}') == '{"ssid":"ssid-2","wifi":1}'
