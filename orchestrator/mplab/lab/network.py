"""Make the network of the virtual lab: its nodes, wired and addressed (`mplab.lab.topology`)."""

import os
import platform
from collections.abc import Collection, Mapping
from pathlib import Path

from mplab.base.nodes import Node, start_node
from mplab.base.paths import WLAN
from mplab.base.programs import ETHTOOL, NFT
from mplab.drivers.transport.redirect import nft_rules
from mplab.format.sites import DNS_ADDRESS
from mplab.lab import topology

RESOLV_CONF = "resolv.conf"
_MULTIPATH_SERVERS = ("proxy", "origin")
"""Nodes that accept subflows of the phone."""


def make_network(
    scratch: Path,
    *,
    replaced: Collection[str] = (),
    networks: Mapping[str, int] | None = None,
    redirects: bool = True,
) -> dict[str, Node]:
    """Make and configure every node of the virtual lab. Return name → node.

    Args:
        scratch: private folder of the lab.
        replaced: nodes that another system replaces: they have interfaces, but no addresses.
        networks: node → descriptor of its network namespace; other nodes get a new one.
        redirects: redirect the TCP of the node ``phone`` to the agent; False: the phone's driver does it.
    """
    resolv = scratch / RESOLV_CONF
    resolv.write_text(resolv_conf())
    nsswitch = scratch / "nsswitch.conf"
    nsswitch.write_text("passwd: files\ngroup: files\nhosts: files dns\n")
    hosts = scratch / "hosts"
    hosts.write_text(f"127.0.0.1 localhost {platform.node()}\n")
    target = Path("/etc/resolv.conf").resolve()
    if target.is_relative_to("/run"):  # the host's file is in /run, which the lab has emptied
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    nodes = {}
    for name in topology.NODES:
        files = {resolv: target, nsswitch: Path("/etc/nsswitch.conf"), hosts: Path("/etc/hosts")}
        binds = files if name in {"phone", "peer"} else {}
        nodes[name] = start_node(name, binds=binds, network=(networks or {}).get(name))
    root = Node("lab", os.getpid())
    root.ip("link set lo up", *topology.wire_commands({name: node.pid for name, node in nodes.items()}))
    for name, node in nodes.items():
        _prepare(name, node, forwards=name not in replaced)
        if name not in replaced:
            _configure(name, node, redirects=redirects)
    return nodes


def resolv_conf(*, direct: bool = False) -> str:
    """Return the content of the phone's and the peer's ``resolv.conf``.

    Args:
        direct: lookups cross the link condition as datagrams, and lost ones are repeated after 1 s, as the first SYN
            of a connection. Otherwise the agent carries them.
    """
    return f"nameserver {DNS_ADDRESS}\noptions {'timeout:1 attempts:5' if direct else 'timeout:5 attempts:1'}\n"


def _prepare(name: str, node: Node, *, forwards: bool) -> None:
    node.sysctl(_sysctls(name, forwards=forwards))
    for interface in topology.interfaces_of(name):
        node.run([str(ETHTOOL.path()), "-K", interface, "tso", "off", "gso", "off", "gro", "off"])


def _configure(name: str, node: Node, *, redirects: bool) -> None:
    node.ip(*topology.address_commands(name))
    if name == "phone":
        node.ip(*topology.phone_route_commands(WLAN))
        if redirects:
            node.run([str(NFT.path()), "-f", "-"], stdin=nft_rules(topology.PROXY))
    elif routes := topology.ROUTES.get(name):
        node.ip(*routes)
    if name in _MULTIPATH_SERVERS and Path("/proc/sys/net/mptcp/enabled").exists():
        node.ip("mptcp limits set subflow 4 add_addr_accepted 0")


def _sysctls(name: str, *, forwards: bool) -> dict[str, object]:
    values: dict[str, object] = {
        # No metrics (ssthresh, RTT) carry over from one cell to the next.
        "net.ipv4.tcp_no_metrics_save": 1,
        # Two interfaces on one host: answers are sent by the route table, not by the interface of the request.
        "net.ipv4.conf.all.rp_filter": 0,
        "net.ipv4.conf.default.rp_filter": 0,
        "net.ipv4.ip_forward": int(forwards and name in {"router", "proxy"}),
    }
    if Path("/proc/sys/net/ipv6").exists():
        values |= {"net.ipv6.conf.all.disable_ipv6": 1, "net.ipv6.conf.default.disable_ipv6": 1}
    if name in {"phone", *_MULTIPATH_SERVERS} and Path("/proc/sys/net/mptcp/enabled").exists():
        values["net.mptcp.enabled"] = 1
    return values
