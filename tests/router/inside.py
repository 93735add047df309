"""Inside the private namespaces of one stand-in router: phones, server, and the virtual machine between them.

``python -m tests.router.inside SETTINGS``: JSON with ``client_key``. Prints one line of JSON, ``{"host_key": …}``,
when the virtual machine has been started, and stays until it is killed.
"""

import json
import os
import sys
import time
from pathlib import Path

from orchestrator.lab.nodes import Node, NodeProcess, start_node
from tests.router.image import build

ROOT = Path("/run/router")
"""The router's root file system: in the tmpfs of the lab."""

LOG = Path("/run/router.log")
MEMORY = "96M"
_FIRST = ("nice", "-n", "-15")
"""A router is a machine of its own: where this user may, other programs of the host do not keep it waiting."""
_TAP_PACKETS = 10_000
"""Wait for the virtual machine while it does not run: a process like others, on a busy host."""
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
    """Packets leave by the interface whose address or name a program has chosen; wlan0 or eth0 else."""
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


def boot(router: Node) -> NodeProcess:
    """Start the virtual machine."""
    nets = [
        f"vec{number}:transport=tap,ifname=tap-{name},depth=128,mac=02:66:00:00:00:0{number + 1}"
        for number, name in enumerate(_GATEWAYS)
    ]
    return router.spawn(
        [
            *(
                *_FIRST,
                "/usr/bin/linux.uml",
                f"mem={MEMORY}",
                "umid=router",
                "uml_dir=/run/uml/",
                "root=/dev/root",
                "quiet",
                "noreboot",
            ),
            *("rootfstype=hostfs", f"rootflags={ROOT}", "rw", "init=/sbin/init", *nets),
            *("con0=null,fd:1", "con=null", "ssl=null"),
        ],
        log=LOG,
        env={"TMPDIR": "/dev/shm"},  # noqa: S108 - where the machine's memory is, in the lab's tmpfs
    )


def main() -> None:
    """Bring all up; stay."""
    settings = json.loads(sys.argv[1])
    ROOT.mkdir()
    host_key = build(ROOT, client_key=settings["client_key"])
    router = _make_network()
    print(json.dumps({"host_key": host_key}), flush=True)
    while True:  # when it ends, it was rebooted
        machine = boot(router)
        while machine.poll() is None:
            time.sleep(0.1)


if __name__ == "__main__":
    main()
