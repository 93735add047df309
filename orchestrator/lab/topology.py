"""Who is connected to whom in the virtual lab, and by which addresses.

The table of ``docs/design.md`` as data; nothing here touches the system.
"""

from dataclasses import dataclass
from typing import Final

PHONE_WLAN: Final = "10.64.1.2"
PHONE_RMNET: Final = "10.64.2.2"
ROUTER_WLAN: Final = "10.64.1.1"
ROUTER_RMNET: Final = "10.64.2.1"
ROUTER_LAN: Final = "10.64.3.1"
PROXY: Final = "10.64.3.2"
PROXY_WAN: Final = "10.65.255.1"
ORIGIN_WAN: Final = "10.65.255.2"
ORIGIN_NET: Final = "10.65.0.0/16"
DNS: Final = "10.65.0.53"
ECHO: Final = "10.65.0.7"
ECHO_PORT: Final = 7007
"""Where the origin answers datagrams (`mpflex udp-echo`)."""
MANAGEMENT_LAB: Final = "10.67.0.1/30"
MANAGEMENT_ROUTER: Final = "10.67.0.2/30"
"""Between a virtual router and the orchestrator, which drives it over SSH; no traffic of phones passes here."""
ORIGIN_PEER: Final = "10.66.0.1"
PEER: Final = "10.66.0.2"

WLAN: Final = "wlan0"
RMNET: Final = "rmnet0"
PHONE_INTERFACES: Final = {WLAN: PHONE_WLAN, RMNET: PHONE_RMNET}
GATEWAYS: Final = {WLAN: ROUTER_WLAN, RMNET: ROUTER_RMNET}
SPARE_HOSTS: Final = range(3, 11)
"""Last numbers of the addresses that the phone gets, one after the other, from new access points."""
ROUTE_TABLES: Final = {WLAN: 101, RMNET: 102}

PROBE_SERVER: Final = f"{PROXY}:5007"
PROXY_TCP: Final = f"{PROXY}:7001"
PROXY_MPTCP: Final = f"{PROXY}:7002"
PROXY_MPFLEX: Final = f"{PROXY}:7003"
PROXY_MPFLEX_PLAIN: Final = f"{PROXY}:7004"
AGENT_REDIRECT_PORT: Final = 3128
AGENT_DNS_PORT: Final = 3153
AGENT_SOCKS_PORT: Final = 1080
AGENT_MARK: Final = 0x6D70

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
    Wire("router", "lan", "proxy", "eth0"),
    Wire("proxy", "wan0", "air", "wan-proxy"),
    Wire("air", "wan-origin", "origin", "eth0"),
    Wire("origin", "peer0", "peer", "eth0"),
)

ADDRESSES: Final = {
    ("phone", WLAN): f"{PHONE_WLAN}/24",
    ("phone", RMNET): f"{PHONE_RMNET}/24",
    ("router", "wlan"): f"{ROUTER_WLAN}/24",
    ("router", "rmnet"): f"{ROUTER_RMNET}/24",
    ("router", "lan"): f"{ROUTER_LAN}/24",
    ("proxy", "eth0"): f"{PROXY}/24",
    ("proxy", "wan0"): f"{PROXY_WAN}/30",
    ("origin", "eth0"): f"{ORIGIN_WAN}/30",
    ("origin", "peer0"): f"{ORIGIN_PEER}/30",
    ("peer", "eth0"): f"{PEER}/30",
}

NEIGHBOURS: Final = (
    # Both ends of every emulated link: no ARP exchange ever waits on an emulated delay.
    (("phone", WLAN), ("router", "wlan")),
    (("phone", RMNET), ("router", "rmnet")),
    (("proxy", "wan0"), ("origin", "eth0")),
)


def spare_addresses(interface: str) -> list[str]:
    """What new access points give to an interface of the phone."""
    network = PHONE_INTERFACES[interface].rpartition(".")[0]
    return [f"{network}.{host}" for host in SPARE_HOSTS]


def mac(node: str, interface: str) -> str:
    """The fixed hardware address of an interface (locally administered)."""
    ends = [end for wire in WIRES for end in ((wire.node_a, wire.interface_a), (wire.node_b, wire.interface_b))]
    return f"02:6d:70:00:00:{ends.index((node, interface)) + 1:02x}"


def wire_commands(pids: dict[str, int]) -> list[str]:
    """`ip` commands that make every veth pair between the namespaces of the processes `pids`."""
    return [
        f"link add {w.interface_a} address {mac(w.node_a, w.interface_a)} netns {pids[w.node_a]} type veth "
        f"peer name {w.interface_b} address {mac(w.node_b, w.interface_b)} netns {pids[w.node_b]}"
        for w in WIRES
    ]


def interfaces_of(node: str) -> list[str]:
    """Interfaces of a node, without ``lo``."""
    return [
        interface
        for wire in WIRES
        for owner, interface in ((wire.node_a, wire.interface_a), (wire.node_b, wire.interface_b))
        if owner == node
    ]


def address_commands(node: str) -> list[str]:
    """`ip` commands that bring a node's interfaces up with addresses and neighbours."""
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
    """What a node knows of others without asking: its interface, their address, their hardware address."""
    found = []
    for one, other in NEIGHBOURS:
        for (owner, interface), peer in ((one, other), (other, one)):
            if owner == node:
                address = ADDRESSES[peer].split("/")[0]
                spare = spare_addresses(peer[1]) if peer[0] == "phone" else []
                found += [(interface, known, mac(*peer)) for known in (address, *spare)]
    return found


ROUTES: Final = {
    # For the phone's own datagrams, when no transport carries them; everything else has no way past the proxy.
    "router": (f"route add {ECHO}/32 via {PROXY}",),
    "proxy": (f"route add 10.64.0.0/16 via {ROUTER_LAN}", f"route add {ORIGIN_NET} via {ORIGIN_WAN}"),
    "origin": (f"route add local {ORIGIN_NET} dev lo", f"route add 10.64.0.0/16 via {PROXY_WAN}"),
    "peer": (f"route add {ORIGIN_NET} via {ORIGIN_PEER}",),
}


_PRIMARY_METRIC = 50


def phone_route_commands(primary: str) -> list[str]:
    """Policy routing of the phone: a table per interface, a default route by each, and one that is preferred."""
    commands = []
    for metric, (interface, address) in zip((100, 200), PHONE_INTERFACES.items(), strict=True):
        gateway, table = GATEWAYS[interface], ROUTE_TABLES[interface]
        commands += [
            f"route replace default via {gateway} dev {interface} table {table}",
            f"route add default via {gateway} dev {interface} metric {metric}",
            f"rule add from {address} table {table} priority {table}",
        ]
    return [*commands, phone_primary_command(primary)]


def phone_primary_command(primary: str) -> str:
    """The `ip` command that makes the phone prefer an interface; it may be given again and again."""
    return f"route replace default via {GATEWAYS[primary]} dev {primary} metric {_PRIMARY_METRIC}"


REDIRECT_RULES: Final = f"""
table ip mplab {{
  chain output {{
    type nat hook output priority -100;
    meta mark {AGENT_MARK:#x} return
    udp dport 53 redirect to :{AGENT_DNS_PORT}
    ip daddr {{ 127.0.0.0/8, {PROXY} }} return
    meta l4proto tcp redirect to :{AGENT_REDIRECT_PORT}
  }}
  chain refuse {{
    type filter hook output priority 0;
    meta mark {AGENT_MARK:#x} accept
    ip daddr {{ 127.0.0.0/8, {PROXY} }} accept
    ip daddr {ECHO} udp dport {ECHO_PORT} accept
    meta l4proto udp counter reject
  }}
}}
"""
"""nft rules of the phone: TCP and DNS go to the agent, other UDP (QUIC) is refused.

The probe's UDP goes to the proxy's address and passes; so do datagrams for the origin's echo service, which leave by
the default route unless an application gives them to the agent."""
