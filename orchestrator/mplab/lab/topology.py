"""Define the wires and addresses of the virtual lab.

The data are the same as in the table of nodes in ``docs/design.md``. No function here changes the system.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mplab.base.endpoints import Endpoints
from mplab.base.paths import RMNET, WLAN
from mplab.drivers.phone.routes import primary_command
from mplab.drivers.shaper.driver import Wiring
from mplab.format.sites import DNS_ADDRESS, ECHO_ADDRESS, NETWORK

PHONE_WLAN: Final = "10.64.1.2"
PHONE_RMNET: Final = "10.64.2.2"
ROUTER_WLAN: Final = "10.64.1.1"
ROUTER_RMNET: Final = "10.64.2.1"
ROUTER_LAN: Final = "10.64.3.1"
PROXY: Final = "10.64.3.2"
PROXY_WAN: Final = "10.64.4.1"
ORIGIN_WAN: Final = "10.64.4.2"
_ORIGIN_HALVES: Final = ("10.65.0.0/17", "10.65.128.0/17")
"""The origin's network, as two halves: their routes are more specific than a route that a container already has."""
MANAGEMENT_LAB: Final = "10.67.0.1/30"
MANAGEMENT_ROUTER: Final = "10.67.0.2/30"
"""Network over which the orchestrator controls a virtual router by SSH; it carries no traffic of the phone."""
ORIGIN_PEER: Final = "10.66.0.1"
PEER: Final = "10.66.0.2"

PROXY_LAN: Final = "lan0"
"""The proxy's interface towards the phone. The name is not in use in containers, which can replace the node."""
PHONE_INTERFACES: Final = {WLAN: PHONE_WLAN, RMNET: PHONE_RMNET}
GATEWAYS: Final = {WLAN: ROUTER_WLAN, RMNET: ROUTER_RMNET}
SPARE_HOSTS: Final = range(3, 11)
"""Last octets of the addresses that the phone gets from new access points, in this order."""
ROUTE_TABLES: Final = {WLAN: 101, RMNET: 102}

SCRATCH: Final = Path("/run/mplab")
"""Folder for files that must not outlive the lab: a tmpfs in its own mount namespace."""

ROUTER: Final = "router"
"""Node that is replaced by a virtual router, if the lab has one."""
NODES: Final = ("phone", "air", "router", "proxy", "origin", "peer")


@dataclass(frozen=True)
class Wire:
    """A veth pair: one end in each of two nodes."""

    node_a: str
    interface_a: str
    node_b: str
    interface_b: str


WIRES: Final = (
    Wire("phone", WLAN, "air", "wlan-phone"),
    Wire("air", "wlan-router", "router", "wlan"),
    Wire("phone", RMNET, "air", "rmnet-phone"),
    Wire("air", "rmnet-router", "router", "rmnet"),
    Wire("router", "lan", "proxy", PROXY_LAN),
    Wire("proxy", "wan0", "air", "wan-proxy"),
    Wire("air", "wan-origin", "origin", "wan0"),
    Wire("origin", "peer0", "peer", "eth0"),
)

ADDRESSES: Final = {
    ("phone", WLAN): f"{PHONE_WLAN}/24",
    ("phone", RMNET): f"{PHONE_RMNET}/24",
    ("router", "wlan"): f"{ROUTER_WLAN}/24",
    ("router", "rmnet"): f"{ROUTER_RMNET}/24",
    ("router", "lan"): f"{ROUTER_LAN}/24",
    ("proxy", PROXY_LAN): f"{PROXY}/24",
    ("proxy", "wan0"): f"{PROXY_WAN}/30",
    ("origin", "wan0"): f"{ORIGIN_WAN}/30",
    ("origin", "peer0"): f"{ORIGIN_PEER}/30",
    ("peer", "eth0"): f"{PEER}/30",
}

NEIGHBOURS: Final = (
    # Both ends of every emulated link: no ARP exchange ever waits for an emulated delay.
    (("phone", WLAN), ("router", "wlan")),
    (("phone", RMNET), ("router", "rmnet")),
    (("proxy", "wan0"), ("origin", "wan0")),
)


def spare_addresses(interface: str) -> list[str]:
    """Return the addresses that an interface of the phone gets from new access points, in this order."""
    network = PHONE_INTERFACES[interface].rpartition(".")[0]
    return [f"{network}.{host}" for host in SPARE_HOSTS]


def endpoints() -> Endpoints:
    """Return the addresses of proxy and name server, and those that the phone gets from new access points."""
    return Endpoints(
        proxy=PROXY,
        dns=f"{DNS_ADDRESS}:53",
        spare={interface: spare_addresses(interface) for interface in PHONE_INTERFACES},
    )


def mac(node: str, interface: str) -> str:
    """Return the fixed hardware address of an interface (locally administered)."""
    ends = [end for wire in WIRES for end in ((wire.node_a, wire.interface_a), (wire.node_b, wire.interface_b))]
    return f"02:6d:70:00:00:{ends.index((node, interface)) + 1:02x}"


def wire_commands(pids: dict[str, int]) -> list[str]:
    """Return the `ip` commands that make every veth pair.

    `pids` maps each node to the id of the process that holds its network namespace.
    """
    return [
        f"link add {w.interface_a} address {mac(w.node_a, w.interface_a)} netns {pids[w.node_a]} type veth "
        f"peer name {w.interface_b} address {mac(w.node_b, w.interface_b)} netns {pids[w.node_b]}"
        for w in WIRES
    ]


def interfaces_of(node: str) -> list[str]:
    """Return the interfaces of a node, without ``lo``."""
    return [
        interface
        for wire in WIRES
        for owner, interface in ((wire.node_a, wire.interface_a), (wire.node_b, wire.interface_b))
        if owner == node
    ]


def address_commands(node: str) -> list[str]:
    """Return the `ip` commands that bring a node's interfaces up, with addresses and static neighbours."""
    commands = []
    for interface in interfaces_of(node):
        if address := ADDRESSES.get((node, interface)):
            commands.append(f"addr add {address} dev {interface}")
        commands.append(f"link set {interface} up")
    return commands + [
        f"neigh replace {address} lladdr {known} dev {interface} nud permanent"
        for interface, address, known in neighbours_of(node)
    ]


def neighbours_of(node: str) -> list[tuple[str, str, str]]:
    """Return (interface of the node, IP address, hardware address) of each static neighbour of a node."""
    neighbours = []
    for first, other in NEIGHBOURS:
        for (owner, interface), peer in ((first, other), (other, first)):
            if owner == node:
                address = ADDRESSES[peer].split("/")[0]
                spare = spare_addresses(peer[1]) if peer[0] == "phone" else []
                neighbours += [(interface, known, mac(*peer)) for known in (address, *spare)]
    return neighbours


_ORIGIN_TO_PHONE: Final = f"10.64.0.0/16 via {PROXY_WAN}"
_PHONE_ROUTES: Final = [
    (interface, where)
    for metric, interface in zip((100, 200), PHONE_INTERFACES, strict=True)
    for where in (f"table {ROUTE_TABLES[interface]}", f"metric {metric}")
]
"""(interface, place) of each default route of the phone; `primary_command` adds one."""

ROUTES: Final = {
    # For the phone's own datagrams, while no transport carries them; all other traffic must pass the proxy.
    "router": (f"route add {ECHO_ADDRESS}/32 via {PROXY}",),
    "proxy": (
        f"route add 10.64.0.0/16 via {ROUTER_LAN}",
        *(f"route add {half} via {ORIGIN_WAN}" for half in _ORIGIN_HALVES),
    ),
    "origin": (f"route replace local {NETWORK} dev lo", f"route add {_ORIGIN_TO_PHONE}"),
    "peer": (f"route add {NETWORK} via {ORIGIN_PEER}",),
}


ROUTER_TO_ORIGIN: Final = f"{NETWORK} via {PROXY}"
"""Route of the node `ROUTER`, only while a cell uses the direct route: the proxy's node forwards the packets."""


@dataclass(frozen=True)
class SenderRoutes:
    """`ip` commands that make the routes between phone and origin: those of each of the two nodes."""

    phone: list[str]
    origin: list[str]


def sender_routes(congestion_control: str = "") -> SenderRoutes:
    """Return `ip` commands for phone and origin that set the congestion control of sockets that do not choose one.

    A route is the only place where it can be set for unmodified programs if the host does not allow the algorithm in
    namespaces (``net.ipv4.tcp_allowed_congestion_control``).

    Args:
        congestion_control: algorithm of the connections that use the routes; "": that of each socket.
    """
    chosen = f" congctl {congestion_control}" if congestion_control else ""
    phone = [
        f"route replace default via {GATEWAYS[interface]} dev {interface} {where}{chosen}"
        for interface, where in _PHONE_ROUTES
    ]
    phone.append(primary_command(WLAN, GATEWAYS[WLAN], congestion_control))
    return SenderRoutes(phone, [f"route replace {_ORIGIN_TO_PHONE}{chosen}"])


_CONFINED, _REFUSED = 201, 202
"""Priorities of the rules of `confine_rules`: after those for the addresses of the phone's interfaces."""


def confine_rules(interface: str) -> list[str]:
    """Return `ip rule` arguments for the phone: sockets that are not bound reach the origin by `interface` only."""
    return [
        f"to {NETWORK} table {ROUTE_TABLES[interface]} priority {_CONFINED}",
        f"to {NETWORK} unreachable priority {_REFUSED}",
    ]


def router_wiring() -> Wiring:
    """Return the interfaces, routes and neighbours of the node `ROUTER`, for a virtual router that replaces it."""
    return Wiring(
        ports={name: (ADDRESSES[ROUTER, name], mac(ROUTER, name)) for name in interfaces_of(ROUTER)},
        towards={WLAN: "wlan", RMNET: "rmnet"},
        routes=ROUTES[ROUTER],
        neighbours=neighbours_of(ROUTER),
        management=(MANAGEMENT_LAB, MANAGEMENT_ROUTER),
    )


def phone_route_commands(primary: str) -> list[str]:
    """Return the `ip` commands for the phone's policy routing; the default route prefers the interface `primary`.

    Packets from an interface's address use a table of their own, with a default route over that interface.
    """
    rules = [
        f"rule add from {address} table {table} priority {table}"
        for address, table in zip(PHONE_INTERFACES.values(), ROUTE_TABLES.values(), strict=True)
    ]
    return [*sender_routes().phone, *rules, primary_command(primary, GATEWAYS[primary])]
