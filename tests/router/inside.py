"""Runs phones, a server and the virtual machine between them in the namespaces of one stand-in router.

``python -m tests.router.inside SETTINGS``: JSON with ``client_key``. The program prints one line of JSON,
``{"host_key": …}``, starts the virtual machine and stays until it is killed.
"""

import json
import os
import sys
import threading
from pathlib import Path

from mplab.base.nodes import Node, start_node
from mplab.drivers.shaper.virtual.image import Port, build
from mplab.drivers.shaper.virtual.router import VirtualMachine

ROOT = Path("/run/router")
"""The router's root file system, in the tmpfs of the lab."""

LOG = Path("/run/router.log")
_TAP_PACKETS = 10_000
"""Queue length of a tap, packets: they wait there while a busy host does not schedule the virtual machine."""
LAN, WAN, SECOND_LAN = "vec0", "vec1", "vec2"
SERVER = "10.66.2.2"
_PLUGS = {
    "phone": (("wlan0", "10.66.1.11", "lan"), ("rmnet0", "10.66.3.11", "lan2")),
    **{f"phone{number}": (("wlan0", f"10.66.1.1{number}", "lan"),) for number in range(2, 8)},
    "server": (("eth0", SERVER, "wan"),),
}
"""Node → its interfaces: name, address, network."""
MAC = {name: f"02:66:00:00:01:1{name.removeprefix('phone') or 1}" for name in _PLUGS if name != "server"}
_GATEWAYS = {"lan": "10.66.1.1", "wan": "10.66.2.1", "lan2": "10.66.3.1"}
_TABLES = {"wlan0": 101, "rmnet0": 102, "eth0": 103}


def _make_network() -> Node:
    nodes = {name: start_node(name) for name in ("router", *_PLUGS)}
    router = nodes["router"]
    for network in _GATEWAYS:
        router.ip(f"link add br-{network} type bridge forward_delay 0", f"link set br-{network} up")
        router.ip(
            f"tuntap add tap-{network} mode tap",
            f"link set tap-{network} txqueuelen {_TAP_PACKETS} master br-{network} up",
        )
    for name, interfaces in _PLUGS.items():
        node = nodes[name]
        for interface, address, network in interfaces:
            wire = f"{name}-{network}"
            Node("lab", os.getpid()).ip(
                f"link add {interface} netns {node.pid} type veth peer name {wire} netns {router.pid}"
            )
            router.ip(f"link set {wire} master br-{network} up")
            if interface == "wlan0":
                node.ip(f"link set {interface} address {MAC[name]}")
            node.run(["ethtool", "-K", interface, "tso", "off", "gso", "off", "gro", "off", "tx", "off"])
            _routes(node, interface, address, _GATEWAYS[network])
        node.sysctl({"net.ipv4.conf.all.rp_filter": 0, "net.ipv4.tcp_congestion_control": "reno"})
    return router


def _routes(node: Node, interface: str, address: str, gateway: str) -> None:
    """Route packets by the interface whose address or name a program has chosen, otherwise by wlan0 or eth0."""
    table = _TABLES[interface]
    lines = [
        f"addr add {address}/24 dev {interface}",
        f"link set {interface} up",
        f"route add default via {gateway} dev {interface} metric {table}",
        f"route add default via {gateway} dev {interface} table {table}",
        f"rule add from {address} table {table}",
        f"rule add oif {interface} table {table}",
    ]
    node.ip(*lines)


PORTS = [
    Port(f"vec{number}", f"{gateway}/24", f"02:66:00:00:00:0{number + 1}", f"transport=tap,ifname=tap-{name}")
    for number, (name, gateway) in enumerate(_GATEWAYS.items())
]


def main() -> None:
    """Start everything and wait for ever."""
    settings = json.loads(sys.argv[1])
    ROOT.mkdir()
    host_key = build(ROOT, client_key=settings["client_key"], ports=PORTS)
    router = _make_network()
    print(json.dumps({"host_key": host_key}), flush=True)
    VirtualMachine("router", router, root=ROOT, ports=PORTS, log=LOG).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
