"""Runs a device in a node, inside a lab's namespaces; the device takes the node's interfaces down and up again."""

import os
import sys
import tempfile
from pathlib import Path

from mplab.base.nodes import Node, start_node
from mplab.device import Device, DeviceSettings
from tests.device.conftest import start_adb, wait_until

_LINKS = {"wlan0": ("10.64.1.2/24", "10.64.1.1"), "rmnet0": ("10.64.2.2/24", "10.64.2.1")}


def make_nodes() -> Node:
    """Make a phone and a router with a link for each interface; return the phone."""
    phone, router = start_node("phone"), start_node("router")
    outside = Node("lab", os.getpid())
    outside.ip("link set lo up")
    for interface, (address, gateway) in _LINKS.items():
        outside.ip(f"link add {interface} netns {phone.pid} type veth peer name {interface} netns {router.pid}")
        router.ip(f"addr add {gateway}/24 dev {interface}", f"link set {interface} up")
        phone.ip(f"addr add {address} dev {interface}", f"link set {interface} up")
        phone.ip(f"route add default via {gateway} dev {interface} metric {100 if interface == 'wlan0' else 200}")
        phone.ip(f"rule add from {address.split('/')[0]} table {len(interface)}00")
        phone.ip(f"route add default via {gateway} dev {interface} table {len(interface)}00")
    return phone


def seen(phone: Node) -> tuple[str, ...]:
    """Return the addresses, routes, rules and redirections of the phone's node."""
    commands = ("ip -4 -o addr", "ip -4 route show table all", "ip rule", "nft list ruleset")
    return tuple("\n".join(sorted(phone.run(["sh", "-c", command]).stdout.splitlines())) for command in commands)


def main() -> None:
    """Run the test.

    Raises:
        AssertionError: the node or the device is in an unexpected state.
    """
    phone = make_nodes()
    phone.run(["nft", "add table ip lab"])
    before = seen(phone)
    home = Path(tempfile.mkdtemp(dir="/run"))
    with start_adb(home) as adb:
        settings = DeviceSettings(phone="android-13", apps=False)
        with Device(settings, phone) as device:
            serial = adb.connect(device)

            def sh(command: str) -> str:
                return adb.text("shell", f"({command}) 2>&1", serial=serial)

            wait_until(lambda: device.state()["radios"]["data_up"], "both radios are up")
            assert seen(phone) == before, (before, seen(phone))
            assert "10.64.1.2/24" in sh("ip addr show wlan0")
            assert "1 packets received" in sh("ping -c 1 -w 5 10.64.2.1")
            sh("svc wifi disable")
            wait_until(lambda: "state DOWN" in phone.run(["ip", "link", "show", "wlan0"]).stdout, "wlan0 is down")
            sh("svc wifi enable")
            wait_until(lambda: device.state()["radios"]["wifi_up"], "WiFi is back")
            assert seen(phone) == before, (before, seen(phone))
            changes = ("nft add table ip mine", "ip rule add from 10.1.1.1 table 300", "ip link set wlan0 mtu 1400")
            sh(f"su -c '{'; '.join(changes)}; sysctl -w net.ipv4.ip_forward=1'")
            assert seen(phone) != before
            device.fault("reboot", seconds=1)
            wait_until(lambda: not device.state()["booted"], "it goes down")
            wait_until(lambda: all(device.state()["radios"][key] for key in ("wifi_up", "data_up")), "it has booted")
            assert seen(phone) == before, (before, seen(phone))
            adb.reconnect(device)
            assert "mtu 1500" in sh("ip link show wlan0"), "what a boot forgets"
            assert sh("sysctl -n net.ipv4.ip_forward") == "0\n"
            sh("su -c 'ip rule add from 10.1.1.1 table 300'; svc wifi disable")
            wait_until(lambda: not device.state()["radios"]["wifi_up"], "WiFi is down")
        assert seen(phone) == before, "a node is left as it was found"
    sys.stdout.write("all is well\n")


if __name__ == "__main__":
    main()
