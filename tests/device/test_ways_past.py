"""Traffic that bypasses the agent makes a cell invalid; on an emulated device."""

from mplab.device import Device
from mplab.drivers.phone.adb import AdbPhone, AdbServer, AdbSettings
from mplab.drivers.phone.adb.routing import Routing
from mplab.drivers.phone.settings import AdbPhoneFile
from mplab.lab.android import AndroidSide

FILE = AdbPhoneFile.model_validate({"driver": "adb", "ready": {"idle_for": "0 s"}})


def unused() -> str:
    """Raise AssertionError: no Appium server must be started."""
    raise AssertionError


def test_a_cell_is_told_what_is_open_and_the_phone_is_put_right(server: AdbServer, device: Device) -> None:
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        side = AndroidSide(phone, FILE, appium=unused, install=False)
        side.take_over("203.0.113.5")
        phone.script("ip -6 addr add 2001:db8::2/64 dev wlan0 nodad")
        state = side.look(None)
        assert (state.facts["quic_open"], state.facts["ipv6_open"], state.ways_past) == ("false", "false", [])
        assert side.recover("the app was slow") == "", "nothing was needed"

        phone.script("iptables -F OUTPUT; iptables -t nat -F OUTPUT; ip6tables -F OUTPUT")
        state = side.look(None)
        assert (state.facts["quic_open"], state.facts["ipv6_open"]) == ("true", "true")
        assert state.ways_past == [
            "one: TCP and names are not redirected to the agent: its iptables rules are gone; "
            "apps may go past the transport",
            "one: QUIC is open: its iptables rules are gone; apps may go past the transport",
            "one: IPv6 is open: its ip6tables rules are gone; apps may go past the transport",
        ]
        assert side.recover(state.ways_past[0])
        assert side.ways_past() == []
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        assert "mplab" not in phone.script("iptables-save; ip6tables-save").stdout


def test_what_android_itself_sends_passes(server: AdbServer, device: Device) -> None:
    with AdbPhone("one", server, AdbSettings(serial=device.address)) as phone:
        AndroidSide(phone, FILE, appium=unused, install=False).take_over("203.0.113.5")
        for port in ("123", "500", "4500", "5000"):
            phone.script(f"curl -s -m 1 tftp://192.168.49.1:{port}/x", check=False)
        lines = phone.script("iptables -nvxL mplab").stdout.splitlines()
        passed = {words[-1] for words in map(str.split, lines) if "RETURN" in words and int(words[0])}
        assert passed >= {"dpt:123", "dpt:500", "dpt:4500"}, lines
        phone.script("iptables -C mplab -p udp --sport 68 --dport 67 -j RETURN")
        (rejected,) = (int(line.split()[0]) for line in lines if "REJECT" in line)
        assert rejected >= 1


def test_an_unrooted_phone_has_no_such_control(server: AdbServer, device: Device) -> None:
    file = AdbPhoneFile.model_validate({"driver": "adb", "root": "none", "ready": {"idle_for": "0 s"}})
    with AdbPhone("one", server, AdbSettings(serial=device.address, root="none")) as phone:
        side = AndroidSide(phone, file, appium=unused, install=False)
        side.take_over("203.0.113.5")
        state = side.look(None)
        assert (state.facts["quic_open"], state.ways_past) == ("true", [])
        assert Routing(phone).quic_open()
