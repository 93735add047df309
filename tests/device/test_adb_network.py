"""Radios, routes, IPv6 and QUIC of an emulated device; all are restored when the phone is released."""

from collections.abc import Iterator

import pytest

from mplab.base.errors import DeviceError, LabNotReadyError
from mplab.device import Device, DeviceSettings
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.kernel import OutOfTreeSettings, set_out_of_tree, use_of
from mplab.drivers.phone.adb.radios import Radios, parse_types, type_bits
from mplab.drivers.phone.adb.routing import Routing

from .conftest import wait_until

_SEEN = (
    "ip rule; ip -4 route show table all; iptables-save | grep '^-'; ip6tables-save | grep '^-'; settings list global;"
    " cat /proc/sys/net/ipv6/conf/*/disable_ipv6; cmd phone get-allowed-network-types-for-users"
)


@pytest.fixture(scope="module")
def watcher(server: AdbServer, device: Device) -> Iterator[AdbPhone]:
    """The same phone, only for reading its state."""
    with AdbPhone("watcher", server, AdbSettings(serial=device.address)) as watcher:
        yield watcher


@pytest.fixture
def phone(server: AdbServer, device: Device, watcher: AdbPhone) -> Iterator[AdbPhone]:
    """A phone for one test; afterwards its state must be unchanged."""
    before = seen(watcher)
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        yield phone
    wait_until(lambda: seen(watcher) == before, "everything is as it was")


def seen(phone: AdbPhone) -> list[str]:
    return sorted(phone.script(_SEEN, check=False).stdout.splitlines())


def test_both_radios_at_once(phone: AdbPhone, watcher: AdbPhone, device: Device) -> None:
    watcher.script("settings put global mobile_data_always_on 0")
    try:
        wait_until(lambda: not device.state()["radios"]["data_up"], "mobile data is down beside WiFi")
        with AdbPhone("two", phone._server, AdbSettings(serial=device.address)) as two:
            Radios(two).both_up(timeout_s=20)
            assert dict(two.interfaces) == {"wlan0": "192.168.49.2", "rmnet0": "10.176.0.2"}
        assert watcher.script("settings get global mobile_data_always_on").stdout == "0\n"
    finally:
        watcher.script("settings put global mobile_data_always_on 1")
        wait_until(lambda: bool(device.state()["radios"]["data_up"]), "mobile data is up")


def test_a_radio_is_switched_off_and_told(phone: AdbPhone, device: Device) -> None:
    radios = Radios(phone)
    radios.switch("wifi", on=False)
    wait_until(lambda: not device.state()["radios"]["wifi_up"], "WiFi is down")
    with pytest.raises(DeviceError, match=r"one \(.*\): wifi: no address within 0\.3 s"):
        radios.wait_up("wifi", "lte", timeout_s=0.3)
    assert set(phone.interfaces) == {"rmnet0"}


def test_generations_of_networks(phone: AdbPhone) -> None:
    radios = Radios(phone)
    radios.set_generation("4g")
    assert radios.allowed() == type_bits("4g")
    radios.set_generation("3g", only=True)
    assert radios.allowed() == type_bits("3g", only=True)


def test_bits_are_those_of_android() -> None:
    # NETWORK_TYPE_BITMASK_GSM | GPRS | EDGE = 32768 | 1 | 2; CDMA 8, 1xRTT 64.
    assert type_bits("2g") == 32768 | 1 | 2 | 8 | 64
    assert type_bits("5g", only=True) == 524288
    assert parse_types("GPRS|EDGE|UMTS|LTE|GSM|LTE_CA|NR") == 1 | 2 | 4 | 4096 | 32768 | 262144 | 524288
    assert parse_types("101\n") == 5
    assert parse_types("No valid subscription found.") == 0


def test_before_android_12_it_is_a_setting(server: AdbServer) -> None:
    with (
        Device(DeviceSettings(phone="android-10", apps=False)) as old,
        AdbPhone("old", server, AdbSettings(serial=old.address)) as phone,
    ):
        with AdbPhone("old", server, AdbSettings(serial=old.address)) as again:
            Radios(again).set_generation("4g", only=True)
            assert phone.script("settings get global preferred_network_mode").stdout == "11\n"
        assert phone.script("settings get global preferred_network_mode").stdout != "11\n"
        if not phone.rooted:
            with pytest.raises(DeviceError, match="only on a rooted phone"):
                Routing(phone).stop_quic()
            assert Routing(phone).quic_open()


@pytest.mark.parametrize(("path", "device_name"), [("wifi", "wlan0"), ("lte", "rmnet0")])
def test_default_route_and_policy(phone: AdbPhone, path: str, device_name: str) -> None:
    routing = Routing(phone)
    routing.set_default(path)
    assert routing.default_device() == device_name
    for interface, address in phone.interfaces.items():
        route = phone.script(f"ip route get 203.0.113.1 from {address}").stdout
        assert f"dev {interface}" in route
    routing.set_default("wifi")
    assert routing.default_device() == "wlan0"
    assert phone.script("ip rule").stdout.count("9000:") == 1


def test_ipv6_is_refused_also_when_it_comes_back(phone: AdbPhone) -> None:
    phone.script("ip -6 addr add 2001:db8::2/64 dev wlan0 nodad")
    routing = Routing(phone)
    assert routing.ipv6_open()
    routing.stop_ipv6()
    routing.stop_ipv6()
    assert not routing.ipv6_open()
    assert "2001:db8::2" in phone.script("ip -6 addr show dev wlan0").stdout, "Android gives up a network without it"
    phone.script("ip -6 addr add 2001:db8::3/64 dev rmnet0 nodad; curl -s -m 2 'http://[2001:db8::9]/'", check=False)
    phone.script("curl -s -m 2 'tftp://[2001:db8::9]:69/x'", check=False)  # sends UDP
    rules = phone.script("ip6tables -nvxL mplab").stdout
    refused = {line.split()[-1]: int(line.split()[0]) for line in rules.splitlines() if "REJECT" in line}
    assert refused.keys() == {"tcp-reset", "icmp6-port-unreachable"}
    assert all(refused.values()), rules
    phone.script("ip6tables -F OUTPUT")
    assert routing.ipv6_open(), "its rules are gone"


def test_quic_is_blocked(phone: AdbPhone) -> None:
    routing = Routing(phone)
    assert routing.quic_open()
    routing.stop_quic()
    assert not routing.quic_open()
    routing.stop_quic()
    phone.script("curl -s -m 2 -o /dev/null tftp://192.168.49.1:443/x", check=False)  # sends UDP to port 443
    rules = phone.script("iptables -nvxL OUTPUT | grep 'dpt:443'").stdout
    assert int(rules.split()[0]) > 0, "packets were refused"


def test_routes_need_both_interfaces(phone: AdbPhone, device: Device) -> None:
    Radios(phone).switch("data", on=False)
    wait_until(lambda: not device.state()["radios"]["data_up"], "mobile data is down")
    phone.refresh()
    with pytest.raises(DeviceError, match=r"lte has no default route\. Is its interface up"):
        Routing(phone).set_default("lte")


def test_out_of_tree_mptcp_is_set_and_set_back(server: AdbServer, phone: AdbPhone) -> None:
    sysctls = "cat /proc/sys/net/mptcp/mptcp_path_manager /proc/sys/net/mptcp/mptcp_scheduler"
    with (
        Device(DeviceSettings(phone="mptcp-095", apps=False)) as nexus,
        AdbPhone("nexus", server, AdbSettings(serial=nexus.address)) as other,
    ):
        before = other.script(sysctls).stdout
        with AdbPhone("nexus", server, AdbSettings(serial=nexus.address)) as again:
            set_out_of_tree(again, OutOfTreeSettings("default", "redundant", uses={"rmnet0": "backup"}))
            assert other.script(sysctls).stdout == "default\nredundant\n"
        assert other.script(sysctls).stdout == before
        with pytest.raises(DeviceError, match=r"nexus \(.*\): has no rmnet1; there are: wlan0, rmnet0"):
            set_out_of_tree(other, OutOfTreeSettings(uses={"rmnet1": "off"}))
    with pytest.raises(LabNotReadyError, match=r"its kernel has no out-of-tree Multipath TCP \(upstream\)"):
        set_out_of_tree(phone, OutOfTreeSettings())


def test_flags_say_what_multipath_tcp_uses() -> None:
    assert [use_of(flags) for flags in (0x1003, 0x81003, 0x101003)] == ["on", "off", "backup"]
